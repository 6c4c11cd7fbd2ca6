package hindstream.peers;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;

/** What one driver has done. */
final class Case {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final int MOST_EVENTS = 20_000;
  private final Root root;
  private final ObjectNode told = JsonNodeFactory.instance.objectNode();
  private final ArrayNode events = JsonNodeFactory.instance.arrayNode();
  private final Map<Integer, Integer> calledBefore = new HashMap<>();
  ObjectNode piped;

  Case(Root root, InternalTopologyBuilder builder, Map<?, ?> settings, long now) {
    this.root = root;
    told.put("format", 1);
    told.put("kafka", Main.kafka());
    told.put("test", Main.test());
    ObjectNode given = told.putObject("settings");
    new TreeMap<>(settings).forEach((name, value) -> {
      if (!String.valueOf(name).equals("state.dir")) {
        given.put(String.valueOf(name), value instanceof Class<?> type ? type.getName() : String.valueOf(value));
      }
    });
    told.put("now", now);
    if (root != null) {
      told.set("calls", root.calls.deepCopy());
      root.functions.forEach(one -> calledBefore.put(one.id, one.calls.size()));
    }
    try {
      told.put("describe", builder.describe().toString());
    } catch (RuntimeException incomplete) {
      told.put("not_described", incomplete.toString());
    }
  }

  void add(ObjectNode event) {
    if (events.size() < MOST_EVENTS) {
      events.add(event);
    } else {
      told.put("too_many", true);
    }
  }

  /** Writes it down; the driver: null where the test has not closed it. */
  void write(TopologyTestDriver driver) {
    if (root != null) {
      ObjectNode functions = told.putObject("functions");
      root.functions.forEach(
          one -> functions.set(String.valueOf(one.id), one.told(calledBefore.getOrDefault(one.id, 0))));
    }
    told.set("events", events);
    if (driver != null) {
      told.set("stores", Stores.told(driver));
    }
    try (var out = Main.next()) {
      MAPPER.writeValue(out, told);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
