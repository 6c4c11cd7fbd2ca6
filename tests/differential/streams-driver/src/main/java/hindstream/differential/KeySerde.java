package hindstream.differential;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.kstream.Window;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Of any key of a program: a letter says whether it is a string or a windowed key, then come its bytes. Those of a
 * windowed key are the key's, which may be windowed too, and the window's bounds in the order in which Kafka's serdes
 * have them, so that keys of one kind are in the order of those bytes.
 */
public final class KeySerde implements Serde<Object> {
  private static final byte STRING = 'p';
  private static final byte SESSION = 's';
  private static final byte TIME = 't';

  @Override
  public Serializer<Object> serializer() {
    return (topic, key) -> key == null ? null : bytes(key);
  }

  @Override
  public Deserializer<Object> deserializer() {
    return (topic, bytes) -> bytes == null ? null : key(ByteBuffer.wrap(bytes));
  }

  private static byte[] bytes(Object key) {
    if (key instanceof Windowed<?> windowed) {
      byte[] inner = bytes(windowed.key());
      Window window = windowed.window();
      boolean session = window instanceof SessionWindow;
      return ByteBuffer.allocate(1 + inner.length + 2 * Long.BYTES)
          .put(session ? SESSION : TIME)
          .put(inner)
          .putLong(session ? window.end() : window.start())
          .putLong(session ? window.start() : window.end())
          .array();
    }
    byte[] text = ((String) key).getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(1 + text.length).put(STRING).put(text).array();
  }

  private static Object key(ByteBuffer bytes) {
    byte tag = bytes.get();
    if (tag == STRING) {
      return StandardCharsets.UTF_8.decode(bytes).toString();
    }
    int innerBytes = bytes.remaining() - 2 * Long.BYTES;
    Object inner = key(bytes.slice(bytes.position(), innerBytes));
    long one = bytes.getLong(bytes.position() + innerBytes);
    long other = bytes.getLong(bytes.position() + innerBytes + Long.BYTES);
    return new Windowed<>(inner, tag == SESSION ? new SessionWindow(other, one) : new TimeWindow(one, other));
  }
}
