package hindstream.differential;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Of any value of a program: a letter says whether it is a string or a count, then comes its text. */
public final class ValueSerde implements Serde<Object> {
  @Override
  public Serializer<Object> serializer() {
    return (topic, value) ->
        value == null
            ? null
            : ((value instanceof Long ? "l" : "s") + value).getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public Deserializer<Object> deserializer() {
    return (topic, bytes) -> bytes == null ? null : value(new String(bytes, StandardCharsets.UTF_8));
  }

  private static Object value(String tagged) {
    String text = tagged.substring(1);
    if (tagged.charAt(0) == 'l') {
      return Long.valueOf(text);
    }
    return text;
  }
}
