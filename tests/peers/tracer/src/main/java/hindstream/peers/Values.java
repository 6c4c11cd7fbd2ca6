package hindstream.peers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.Change;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** Keys and values as JSON: texts and truths as they are, of all others an object that names the type. */
final class Values {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final int DEEPEST = 8;

  private Values() {}

  static JsonNode told(Object value) {
    return told(value, 0);
  }

  private static JsonNode told(Object value, int depth) {
    if (value == null) {
      return NullNode.instance;
    }
    if (value instanceof String text) {
      return JSON.textNode(text);
    }
    if (value instanceof Boolean is) {
      return JSON.booleanNode(is);
    }
    ObjectNode one = JSON.objectNode();
    if (value instanceof Integer number) {
      return one.put("int", number);
    }
    if (value instanceof Long number) {
      return one.put("long", number);
    }
    if (value instanceof Short number) {
      return one.put("short", number);
    }
    if (value instanceof Double number) {
      return one.put("double", number.toString());
    }
    if (value instanceof Float number) {
      return one.put("float", number.toString());
    }
    if (value instanceof byte[] bytes) {
      return one.put("bytes", Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof Bytes bytes) {
      return one.put("bytes", Base64.getEncoder().encodeToString(bytes.get()));
    }
    if (value instanceof ByteBuffer buffer) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.duplicate().get(bytes);
      return one.put("bytes", Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof UUID uuid) {
      return one.put("uuid", uuid.toString());
    }
    if (value instanceof Windowed<?> windowed) {
      one.set("windowed", told(windowed.key(), depth + 1));
      one.put("start", windowed.window().start());
      one.put("end", windowed.window().end());
      return one.put("window", windowed.window().getClass().getSimpleName());
    }
    if (value instanceof KeyValue<?, ?> pair) {
      one.putArray("pair").add(told(pair.key, depth + 1)).add(told(pair.value, depth + 1));
      return one;
    }
    if (value instanceof Change<?> change) {
      one.putArray("change").add(told(change.newValue, depth + 1)).add(told(change.oldValue, depth + 1));
      return one;
    }
    if (value instanceof ValueAndTimestamp<?> stamped) {
      one.set("stamped", told(stamped.value(), depth + 1));
      return one.put("timestamp", stamped.timestamp());
    }
    if (value instanceof Collection<?> many) {
      ArrayNode list = one.putArray("list");
      many.forEach(each -> list.add(told(each, depth + 1)));
      return one;
    }
    return object(value, depth, one);
  }

  private static JsonNode object(Object value, int depth, ObjectNode one) {
    one.put("object", value.getClass().getName());
    if (value instanceof Enum<?> constant) {
      return one.put("text", constant.name());
    }
    if (value instanceof Optional<?> optional) {
      one.set("value", told(optional.orElse(null), depth + 1));
      return one;
    }
    if (value instanceof Map<?, ?> map) {
      ArrayNode entries = one.putArray("entries");
      map.forEach((key, of) -> entries.addArray().add(told(key, depth + 1)).add(told(of, depth + 1)));
      return one;
    }
    if (depth < DEEPEST && !value.getClass().getName().startsWith("java.")) {
      ObjectNode fields = one.putObject("fields");
      for (Class<?> type = value.getClass(); type != null && type != Object.class; type = type.getSuperclass()) {
        for (Field field : type.getDeclaredFields()) {
          if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
            fields.set(field.getName(), told(Reflection.get(field, value), depth + 1));
          }
        }
      }
      return one;
    }
    return one.put("text", value.toString());
  }

  static JsonNode headers(Headers headers) {
    ArrayNode list = JSON.arrayNode();
    if (headers != null) {
      for (Header header : headers) {
        ArrayNode pair = list.addArray().add(header.key());
        if (header.value() == null) {
          pair.addNull();
        } else {
          pair.add(Base64.getEncoder().encodeToString(header.value()));
        }
      }
    }
    return list;
  }

  static ArrayNode record(Object key, Object value, long timestamp, Headers headers) {
    return JSON.arrayNode().add(told(key)).add(told(value)).add(timestamp).add(headers(headers));
  }
}
