package hindstream.differential;

import java.nio.ByteBuffer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.kstream.Window;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Of any key of a program: a plain one has Kafka's own bytes, before those of a windowed key is one with which no plain
 * one begins. Those of a windowed key are the key's, which may be windowed too, and the window's bounds in the order in which Kafka's serdes
 * have them, so that keys of one kind are in the order of those bytes.
 */
public final class KeySerde implements Serde<Object> {
  private static final byte SESSION = 1;
  private static final byte TIME = 2;

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
    return Functions.keys().bytes(key);
  }

  private static Object key(ByteBuffer bytes) {
    byte tag = bytes.get(bytes.position());
    if (tag != SESSION && tag != TIME) {
      byte[] plain = new byte[bytes.remaining()];
      bytes.get(plain);
      return Functions.keys().key(plain);
    }
    bytes.get();
    int innerBytes = bytes.remaining() - 2 * Long.BYTES;
    Object inner = key(bytes.slice(bytes.position(), innerBytes));
    long one = bytes.getLong(bytes.position() + innerBytes);
    long other = bytes.getLong(bytes.position() + innerBytes + Long.BYTES);
    return new Windowed<>(inner, tag == SESSION ? new SessionWindow(other, one) : new TimeWindow(one, other));
  }
}
