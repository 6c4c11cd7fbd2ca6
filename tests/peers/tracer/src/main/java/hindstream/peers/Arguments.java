package hindstream.peers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;

/** The arguments of a call as JSON: options by their fields, functions by their numbers. */
final class Arguments {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final int DEEPEST = 6;
  private final Call call;

  Arguments(Call call) {
    this.call = call;
  }

  static boolean isOfDsl(Object object) {
    return object instanceof KStream
        || object instanceof KTable
        || object instanceof GlobalKTable
        || object instanceof KGroupedStream
        || object instanceof KGroupedTable
        || object instanceof CogroupedKStream
        || object instanceof TimeWindowedKStream
        || object instanceof SessionWindowedKStream
        || object instanceof TimeWindowedCogroupedKStream
        || object instanceof SessionWindowedCogroupedKStream
        || object instanceof BranchedKStream
        || object instanceof StreamsBuilder
        || object instanceof Topology;
  }

  /** An option that is no argument of a call. */
  static JsonNode told(Object option) {
    return new Arguments(null).one(option, 0);
  }

  /** Tells them; the arguments with which the call goes on. */
  Object[] told(Method method, Object[] arguments) {
    ArrayNode told = call.told.putArray("with");
    Object[] replaced = arguments.clone();
    Class<?>[] types = method.getParameterTypes();
    for (int number = 0; number < arguments.length; number++) {
      Object argument = arguments[number];
      Functions.Wrapped wrapped = argument == null ? null : Functions.wrapped(types[number], argument, call.root);
      if (wrapped != null) {
        replaced[number] = wrapped.function();
        told.addObject().put("function", wrapped.traced().id);
      } else {
        told.add(one(argument, 0));
      }
    }
    return replaced;
  }

  private JsonNode one(Object argument, int depth) {
    if (argument == null) {
      return NullNode.instance;
    }
    if (argument instanceof String || argument instanceof Boolean || argument instanceof Number) {
      return argument instanceof String text
          ? JSON.textNode(text)
          : argument instanceof Boolean is ? JSON.booleanNode(is) : JSON.numberNode(((Number) argument).longValue());
    }
    ObjectNode told = JSON.objectNode();
    if (isOfDsl(argument)) {
      return told.put("ref", call.root.handle(argument));
    }
    if (argument instanceof Duration duration) {
      return told.put("ms", duration.toMillis());
    }
    if (argument instanceof Enum<?> constant) {
      return told.put("constant", constant.name());
    }
    if (argument instanceof Class<?> type) {
      return told.put("type", type.getName());
    }
    if (argument instanceof Pattern pattern) {
      return told.put("pattern", pattern.pattern());
    }
    if (argument instanceof Serde || argument instanceof Serializer || argument instanceof Deserializer) {
      return told.put("serde", argument.getClass().getName());
    }
    if (argument instanceof Properties) {
      ObjectNode named = told.putObject("properties");
      ((Properties) argument).forEach((name, value) -> named.put(String.valueOf(name), String.valueOf(value)));
      return told;
    }
    if (argument instanceof Collection<?> many) {
      ArrayNode list = told.putArray("list");
      many.forEach(each -> list.add(one(each, depth + 1)));
      return told;
    }
    if (argument instanceof Object[] many) {
      ArrayNode list = told.putArray("list");
      for (Object each : many) {
        list.add(one(each, depth + 1));
      }
      return told;
    }
    if (argument instanceof Map<?, ?> map) {
      ObjectNode entries = told.putObject("map");
      map.forEach((name, value) -> entries.set(String.valueOf(name), one(value, depth + 1)));
      return told;
    }
    return options(argument, depth, told);
  }

  private JsonNode options(Object argument, int depth, ObjectNode told) {
    told.put("class", argument.getClass().getSimpleName());
    if (!argument.getClass().getName().startsWith("org.apache.kafka.streams") || depth > DEEPEST) {
      return told;
    }
    ObjectNode fields = told.putObject("fields");
    for (Class<?> type = argument.getClass(); type != null && type != Object.class; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers()) || field.isSynthetic()) {
          continue;
        }
        Object value = Reflection.get(field, argument);
        if (argument instanceof Branched && value != null) {
          if (field.getName().equals("chainFunction")) {
            Reflection.set(field, argument, chain((Function<?, ?>) value));
          } else if (field.getName().equals("chainConsumer")) {
            Reflection.set(field, argument, chain((Consumer<?>) value));
          }
        }
        fields.set(field.getName(), one(value, depth + 1));
      }
    }
    return told;
  }

  @SuppressWarnings("unchecked")
  private Function<Object, Object> chain(Function<?, ?> function) {
    return stream -> {
      int made = call.root.handle(stream);
      ArrayNode before = call.root.redirect(call.nested("chain"));
      int depth = Tracer.suspend();
      try {
        Object result = ((Function<Object, Object>) function).apply(stream);
        call.told.put("chain_of", made);
        if (result != null) {
          call.told.put("chain_is", call.root.handle(result));
        }
        return result;
      } finally {
        Tracer.resume(depth);
        call.root.redirect(before);
      }
    };
  }

  @SuppressWarnings("unchecked")
  private Consumer<Object> chain(Consumer<?> consumer) {
    Function<Object, Object> function = chain((Function<Object, Object>) stream -> {
      ((Consumer<Object>) consumer).accept(stream);
      return null;
    });
    return function::apply;
  }
}
