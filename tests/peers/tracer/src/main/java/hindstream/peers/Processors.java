package hindstream.peers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.Instant;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.Punctuator;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * Processors of tests, wrapped in ones that tell what reaches them and what they do then.
 *
 * <p>A call is {@code {"in": record, "do": [...]}}; its actions: a record forwarded, a store changed, a schedule.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Processors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final Set<String> CHANGES = Set.of("put", "putAll", "putIfAbsent", "delete", "remove");

  private Processors() {}

  /** What a processor is doing, told as it goes on. */
  private static final class Script {
    private final Traced traced;
    private ArrayNode doing = JSON.arrayNode();

    Script(Traced traced) {
      this.traced = traced;
    }

    /** A callback of the processor begins; actions of those that are inside another's stay there. */
    void begins(ObjectNode call) {
      doing = call.putArray("do");
      traced.add(call);
    }

    /** Runs it, and tells as the last action that it has failed. */
    void failing(Runnable callback) {
      ArrayNode mine = doing;
      try {
        callback.run();
      } catch (RuntimeException error) {
        mine.addObject().put("threw", error.getClass().getName());
        throw error;
      }
    }

    void acts(ObjectNode action) {
      doing.add(action);
    }

    Object context(Object context) {
      return proxy(context, (object, method, arguments) -> switch (method.getName()) {
        case "forward" -> forward(context, method, arguments);
        case "schedule" -> schedule(context, method, arguments);
        case "getStateStore" -> store(invoke(context, method, arguments), String.valueOf(arguments[0]));
        default -> invoke(context, method, arguments);
      });
    }

    private Object forward(Object context, Method method, Object[] arguments) throws Throwable {
      ObjectNode action = JSON.objectNode();
      if (arguments[0] instanceof Record record) {
        action.set("forward", Values.record(record.key(), record.value(), record.timestamp(), record.headers()));
      } else if (arguments[0] instanceof FixedKeyRecord record) {
        action.set("forward", Values.record(record.key(), record.value(), record.timestamp(), record.headers()));
      } else {
        action.put("unknown", "forward");
      }
      if (arguments.length > 1) {
        action.put("to", String.valueOf(arguments[1]));
      }
      acts(action);
      ArrayNode before = doing;
      try {
        return invoke(context, method, arguments);
      } finally {
        doing = before; // it may have been called again meanwhile
      }
    }

    private Object schedule(Object context, Method method, Object[] arguments) throws Throwable {
      ObjectNode action = JSON.objectNode();
      Object[] replaced = arguments.clone();
      action.put("schedule", traced.calls.size() + "-" + doing.size());
      for (int number = 0; number < arguments.length; number++) {
        if (arguments[number] instanceof Duration interval) {
          action.put("interval", interval.toMillis());
        } else if (arguments[number] instanceof PunctuationType type) {
          action.put("type", type.name());
        } else if (arguments[number] instanceof Instant start) {
          action.put("start", start.toEpochMilli());
        } else if (arguments[number] instanceof Punctuator punctuator) {
          String name = action.get("schedule").textValue();
          replaced[number] = (Punctuator) timestamp -> {
            ObjectNode call = JSON.objectNode();
            call.put("punctuate", name).put("timestamp", timestamp);
            begins(call);
            punctuator.punctuate(timestamp);
          };
        }
      }
      acts(action);
      return invoke(context, method, replaced);
    }

    private Object store(Object store, String name) {
      return store == null ? null : proxy(store, (object, method, arguments) -> {
        if (CHANGES.contains(method.getName())) {
          ObjectNode action = JSON.objectNode();
          action.put("store", name).put("method", method.getName());
          ArrayNode given = action.putArray("with");
          for (Object argument : arguments) {
            given.add(Values.told(argument));
          }
          acts(action);
        }
        return invoke(store, method, arguments);
      });
    }
  }

  static ProcessorSupplier traced(ProcessorSupplier of, Traced traced) {
    traced.more = stores(of.stores());
    Map<Object, Object> made = new IdentityHashMap<>(); // who always gives the same one, is found out
    return new ProcessorSupplier() {
      @Override
      public Processor get() {
        Processor inner = of.get();
        return inner == null ? null : (Processor) made.computeIfAbsent(inner, one -> processor(inner, new Script(traced)));
      }

      @Override
      public Set<StoreBuilder<?>> stores() {
        return of.stores();
      }
    };
  }

  private static Processor processor(Processor of, Script script) {
    return new Processor() {
      @Override
      public void init(org.apache.kafka.streams.processor.api.ProcessorContext context) {
        script.begins(JSON.objectNode().put("init", true));
        of.init((org.apache.kafka.streams.processor.api.ProcessorContext) script.context(context));
      }

      @Override
      public void process(Record record) {
        script.begins(in(Values.record(record.key(), record.value(), record.timestamp(), record.headers())));
        script.failing(() -> of.process(record));
      }

      @Override
      public void close() {
        of.close();
      }
    };
  }

  static FixedKeyProcessorSupplier traced(FixedKeyProcessorSupplier of, Traced traced) {
    traced.more = stores(of.stores());
    Map<Object, Object> made = new IdentityHashMap<>(); // who always gives the same one, is found out
    return new FixedKeyProcessorSupplier() {
      @Override
      public FixedKeyProcessor get() {
        FixedKeyProcessor inner = of.get();
        return inner == null ? null : (FixedKeyProcessor) made.computeIfAbsent(inner, one -> processor(inner, new Script(traced)));
      }

      @Override
      public Set<StoreBuilder<?>> stores() {
        return of.stores();
      }
    };
  }

  private static FixedKeyProcessor processor(FixedKeyProcessor of, Script script) {
    return new FixedKeyProcessor() {
      @Override
      public void init(FixedKeyProcessorContext context) {
        script.begins(JSON.objectNode().put("init", true));
        of.init((FixedKeyProcessorContext) script.context(context));
      }

      @Override
      public void process(FixedKeyRecord record) {
        script.begins(in(Values.record(record.key(), record.value(), record.timestamp(), record.headers())));
        script.failing(() -> of.process(record));
      }

      @Override
      public void close() {
        of.close();
      }
    };
  }

  static ValueTransformerWithKeySupplier traced(ValueTransformerWithKeySupplier of, Traced traced) {
    traced.more = stores(of.stores());
    Map<Object, Object> made = new IdentityHashMap<>(); // who always gives the same one, is found out
    return new ValueTransformerWithKeySupplier() {
      @Override
      public ValueTransformerWithKey get() {
        ValueTransformerWithKey inner = of.get();
        return inner == null ? null : (ValueTransformerWithKey) made.computeIfAbsent(inner, one -> transformer(inner, new Script(traced)));
      }

      @Override
      public Set<StoreBuilder<?>> stores() {
        return of.stores();
      }
    };
  }

  private static ValueTransformerWithKey transformer(ValueTransformerWithKey of, Script script) {
    return new ValueTransformerWithKey() {
      @Override
      public void init(ProcessorContext context) {
        script.begins(JSON.objectNode().put("init", true));
        of.init((ProcessorContext) script.context(context));
      }

      @Override
      public Object transform(Object key, Object value) {
        ObjectNode call = JSON.objectNode();
        call.putArray("of").add(Values.told(key)).add(Values.told(value));
        script.begins(call);
        Object result = of.transform(key, value);
        call.set("is", Values.told(result));
        return result;
      }

      @Override
      public void close() {
        of.close();
      }
    };
  }

  private static ObjectNode in(JsonNode record) {
    ObjectNode call = JSON.objectNode();
    call.set("in", record);
    return call;
  }

  private static ObjectNode stores(Set<StoreBuilder<?>> builders) {
    if (builders == null) {
      return null;
    }
    ObjectNode told = JSON.objectNode();
    ArrayNode list = told.putArray("stores");
    builders.forEach(builder -> list.add(Arguments.told(builder)));
    return told;
  }

  private static Object proxy(Object of, InvocationHandler handler) {
    Set<Class<?>> interfaces = new LinkedHashSet<>();
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      for (Class<?> one : type.getInterfaces()) {
        if (java.lang.reflect.Modifier.isPublic(one.getModifiers())) {
          interfaces.add(one);
        }
      }
    }
    try {
      return Proxy.newProxyInstance(of.getClass().getClassLoader(), interfaces.toArray(new Class<?>[0]), handler);
    } catch (IllegalArgumentException alien) { // a mock, or one of other interfaces
      return of;
    }
  }

  private static Object invoke(Object of, Method method, Object[] arguments) throws Throwable {
    try {
      method.setAccessible(true);
      return method.invoke(of, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
