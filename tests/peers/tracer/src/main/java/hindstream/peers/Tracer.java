package hindstream.peers;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Base64;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;

/** What the woven classes call. Kafka Streams' tests run in one thread. */
public final class Tracer {
  static final Map<Object, Root> ROOTS = new IdentityHashMap<>();
  private static final Map<Object, Root> BUILDERS = new LinkedHashMap<>(); // these have no equals
  private static final Map<TopologyTestDriver, Case> CASES = Collections.synchronizedMap(new WeakHashMap<>());
  private static final ThreadLocal<int[]> DEPTH = ThreadLocal.withInitial(() -> new int[1]);
  private static Case current;

  private Tracer() {}

  /** Forgets what a test has made. */
  static void forget() {
    for (Case left : CASES.values().toArray(new Case[0])) {
      left.write(null);
    }
    Set<Root> told = Collections.newSetFromMap(new IdentityHashMap<>());
    BUILDERS.forEach((builder, root) -> {
      if (!root.driven && root.hasNodes() && told.add(root)) {
        new Case(root, (InternalTopologyBuilder) builder, Map.of(), 0).write(null);
      }
    });
    ROOTS.clear();
    BUILDERS.clear();
    CASES.clear();
    current = null;
  }

  // The DSL

  /** A method of the DSL is called; null: by Kafka Streams itself. */
  public static Call enter(Object self, Method method, Object[] arguments) {
    int[] depth = DEPTH.get();
    if (depth[0]++ > 0) {
      return null;
    }
    Root root = ROOTS.get(self);
    if (root == null) {
      if (!(self instanceof StreamsBuilder || self instanceof Topology)) {
        return null; // made by other means
      }
      root = new Root();
      if (self instanceof Topology topology) {
        BUILDERS.put(Reflection.get(topology, "internalTopologyBuilder"), root);
      }
    }
    ObjectNode told = JsonNodeFactory.instance.objectNode();
    told.put("on", root.handle(self));
    told.put("class", self.getClass().getSimpleName());
    told.put("method", method.getName());
    Call call = new Call(root, told);
    call.arguments = new Arguments(call).told(method, arguments);
    root.add(told);
    return call;
  }

  /** It returns. */
  public static void exit(Call call, Object result, Throwable error) {
    DEPTH.get()[0]--;
    if (call == null) {
      return;
    }
    if (error != null) {
      call.told.put("threw", error.getClass().getName());
      return;
    }
    if (result instanceof Map<?, ?> branches) {
      ObjectNode named = call.told.putObject("branches");
      branches.forEach((name, stream) -> named.put((String) name, call.root.handle(stream)));
    } else if (result != null && Arguments.isOfDsl(result)) {
      call.told.put("is", call.root.handle(result));
      if (result instanceof Topology topology) {
        BUILDERS.put(Reflection.get(topology, "internalTopologyBuilder"), call.root);
      }
    }
  }

  /** A function of the test is called: the DSL is open to it. */
  static int suspend() {
    int before = DEPTH.get()[0];
    DEPTH.get()[0] = 0;
    return before;
  }

  static void resume(int depth) {
    DEPTH.get()[0] = depth;
  }

  // The driver

  /** A driver is made; its settings, without the record cache, of which there is none here. */
  public static Properties driverStarts(Object builder, Properties settings, long now) {
    Root root = BUILDERS.get(builder);
    if (root != null) {
      root.driven = true;
    }
    current = new Case(root, (InternalTopologyBuilder) builder, settings, now);
    Properties uncached = new Properties();
    uncached.putAll(settings);
    uncached.put("statestore.cache.max.bytes", "0");
    uncached.remove("cache.max.bytes.buffering");
    return uncached;
  }

  /** It has been made. */
  public static void driverMade(TopologyTestDriver driver) {
    CASES.put(driver, current);
  }

  /** A record is piped in. */
  public static void piped(
      TopologyTestDriver driver, String topic, long timestamp, byte[] key, byte[] value, Headers headers) {
    current = CASES.get(driver);
    ObjectNode event = JsonNodeFactory.instance.objectNode();
    event.put("pipe", topic);
    event.put("key", key == null ? null : Base64.getEncoder().encodeToString(key));
    event.put("value", value == null ? null : Base64.getEncoder().encodeToString(value));
    event.put("timestamp", timestamp);
    event.set("headers", Values.headers(headers));
    current.add(event);
    current.piped = event;
  }

  /** It has been processed. */
  public static void pipedEnds(Throwable error) {
    if (error != null && current != null && current.piped != null) {
      current.piped.put("threw", error.toString());
      current.piped.put("cause", cause(error));
    }
  }

  private static String cause(Throwable error) {
    Throwable at = error;
    while (at.getCause() != null) {
      at = at.getCause();
    }
    return at.toString();
  }

  /** The wall clock goes on. */
  public static void advanced(TopologyTestDriver driver, Object by) {
    current = CASES.get(driver);
    ObjectNode event = JsonNodeFactory.instance.objectNode();
    event.put("advance", ((Duration) by).toMillis());
    current.add(event);
  }

  /** A driver is closed. */
  public static void closed(TopologyTestDriver driver) {
    Case one = CASES.remove(driver);
    if (one != null) {
      one.write(driver);
    }
  }

  // Sources and sinks

  /** A source node takes up a record. */
  @SuppressWarnings("unchecked")
  public static void taken(Object context, Object record) {
    if (current == null || current.piped == null || current.piped.has("record")) {
      return;
    }
    String topic = ((InternalProcessorContext<Object, Object>) context).recordContext().topic();
    if (current.piped.get("pipe").textValue().equals(topic)) {
      Record<Object, Object> one = (Record<Object, Object>) record;
      current.piped.set("record", Values.record(one.key(), one.value(), one.timestamp(), one.headers()));
    }
  }

  /** A record is sent to a topic. */
  public static void sent(String topic, Object key, Object value, Headers headers, Long timestamp) {
    if (current == null || topic == null || topic.endsWith("-changelog")) {
      return;
    }
    ObjectNode event = JsonNodeFactory.instance.objectNode();
    event.put("sent", topic);
    event.set("record", Values.record(key, value, timestamp == null ? -1 : timestamp, headers));
    current.add(event);
  }
}
