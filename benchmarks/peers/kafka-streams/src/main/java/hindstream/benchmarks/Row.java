package hindstream.benchmarks;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Fields in order: int64s and doubles in eight bytes, strings with their length (int32) before them; big-endian. */
final class Row {
  private final ByteBuffer bytes;

  private Row(byte[] bytes) {
    this.bytes = ByteBuffer.wrap(bytes);
  }

  /** The serde of what is read from such fields and written to them. */
  static <T> Serde<T> serde(Function<Row, T> read, Function<T, byte[]> write) {
    return Serdes.serdeFrom(
        (topic, value) -> value == null ? null : write.apply(value),
        (topic, bytes) -> bytes == null ? null : read.apply(new Row(bytes)));
  }

  long number() {
    return bytes.getLong();
  }

  String text() {
    int length = bytes.getInt();
    int begin = bytes.position();
    bytes.position(begin + length);
    return new String(bytes.array(), begin, length, UTF_8);
  }

  /** Longs, doubles and strings as bytes. */
  static byte[] of(Object... fields) {
    byte[][] texts = new byte[fields.length][];
    int size = 0;
    for (int i = 0; i < fields.length; i++) {
      if (fields[i] instanceof String text) {
        texts[i] = text.getBytes(UTF_8);
        size += Integer.BYTES + texts[i].length;
      } else {
        size += Long.BYTES;
      }
    }
    ByteBuffer made = ByteBuffer.allocate(size);
    for (int i = 0; i < fields.length; i++) {
      if (texts[i] != null) {
        made.putInt(texts[i].length).put(texts[i]);
      } else if (fields[i] instanceof Double number) {
        made.putDouble(number);
      } else {
        made.putLong((Long) fields[i]);
      }
    }
    return made.array();
  }
}
