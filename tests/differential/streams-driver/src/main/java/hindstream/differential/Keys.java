package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;

/** Of what type a program's plain keys are, and which there are: as KEYS in tests/differential/functions.py. */
enum Keys {
  STRING(Serdes.String(), JsonNode::asText, "a", "b", "ab"),
  LONG(Serdes.Long(), JsonNode::asLong, 3L, -1L, 70L),
  INTEGER(Serdes.Integer(), JsonNode::asInt, 3, -1, 70),
  SHORT(Serdes.Short(), JsonNode::shortValue, (short) 3, (short) -1, (short) 70),
  DOUBLE(Serdes.Double(), JsonNode::asDouble, 0.5, -2.0, 1000.25),
  BYTES(Serdes.Bytes(), key -> bytesOf(key.asText()), bytesOf("03"), bytesOf("ff00"), bytesOf("0303"));

  /** Those that there are. */
  final List<?> all;

  private final Serde<Object> serde;
  private final Function<JsonNode, Object> read;

  @SafeVarargs
  @SuppressWarnings("unchecked")
  <K> Keys(Serde<K> serde, Function<JsonNode, Object> read, K... all) {
    this.serde = (Serde<Object>) serde;
    this.read = read;
    this.all = List.of(all);
  }

  static Keys of(JsonNode program) {
    return valueOf(program.path("keys").asText("string").toUpperCase());
  }

  /** The key of a record of a program; null if it has none. */
  Object read(JsonNode key) {
    return key.isNull() ? null : read.apply(key);
  }

  /** Of digits of 16. */
  private static Bytes bytesOf(String digits) {
    return Bytes.wrap(HexFormat.of().parseHex(digits));
  }

  byte[] bytes(Object key) {
    return serde.serializer().serialize("", key);
  }

  Object key(byte[] bytes) {
    return serde.deserializer().deserialize("", bytes);
  }
}
