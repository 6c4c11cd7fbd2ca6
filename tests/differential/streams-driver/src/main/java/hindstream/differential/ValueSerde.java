package hindstream.differential;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Of any value of a program, in Kafka's own bytes: those of a count, unlike a string's, begin with 0 or -1. */
public final class ValueSerde implements Serde<Object> {
  @Override
  public Serializer<Object> serializer() {
    return (topic, value) ->
        value == null
            ? null
            : value instanceof Long count
                ? ByteBuffer.allocate(Long.BYTES).putLong(count).array()
                : ((String) value).getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public Deserializer<Object> deserializer() {
    return (topic, bytes) -> bytes == null ? null : value(bytes);
  }

  private static Object value(byte[] bytes) {
    return bytes.length == Long.BYTES && (bytes[0] == 0 || bytes[0] == -1)
        ? (Object) ByteBuffer.wrap(bytes).getLong()
        : new String(bytes, StandardCharsets.UTF_8);
  }
}
