package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * Forwards each record several times: to one child, to another, or (null) to all, in the order that a step says. One more
 * when called. In a store, if it uses one, it keeps what it has forwarded last for a key, and tells it with the next; of a
 * table's store it tells what it has, and may put there what it forwards.
 */
final class Telling implements Processor<Object, Object, Object, Object> {
  private static final long WINDOW_MS = 10;

  private final JsonNode step;
  private ProcessorContext<Object, Object> context;
  private KeyValueStore<String, String> store;
  private TimestampedKeyValueStore<Object, Object> table;
  private KeyValueStore<String, String> global;
  private TimestampedWindowStore<String, String> lists;

  /** Builds the store in which a processor keeps all that it has forwarded for a key, by window. */
  static StoreBuilder<TimestampedWindowStore<String, String>> lists(String name) {
    return Stores.timestampedWindowStoreBuilder(
        Stores.persistentTimestampedWindowStore(name, Duration.ofHours(1), Duration.ofMillis(WINDOW_MS), true),
        Serdes.String(),
        Serdes.String());
  }

  Telling(JsonNode step) {
    this.step = step;
  }

  @Override
  public void init(ProcessorContext<Object, Object> given) {
    context = given;
    if (step.hasNonNull("uses")) {
      store = context.getStateStore(step.get("uses").asText());
    }
    if (step.hasNonNull("global")) {
      global = context.getStateStore(step.get("global").asText());
    }
    if (step.hasNonNull("table")) {
      table = context.getStateStore(step.get("table").asText());
    }
    if (step.hasNonNull("lists")) {
      lists = context.getStateStore(step.get("lists").asText());
    }
    if (step.has("tick")) {
      context.schedule(
          Duration.ofMillis(step.get("tick").asLong()),
          step.path("by_wall_clock").asBoolean() ? PunctuationType.WALL_CLOCK_TIME : PunctuationType.STREAM_TIME,
          this::tick);
    }
  }

  private void tick(long timestamp) {
    context.forward(new Record<>("a", kept("a", "t" + timestamp, timestamp), timestamp));
    if (step.has("fails")) {
      Functions.failForSome("t" + timestamp);
      context.forward(new Record<>("b", kept("b", "u" + timestamp, timestamp), timestamp));
    }
  }

  @Override
  public void process(Record<Object, Object> record) {
    int number = 0;
    for (JsonNode child : step.get("forwards")) {
      if (number > 0 && step.has("fails")) {
        Functions.failForSome(record.value());
      }
      Record<Object, Object> forwarded =
          record.withValue(
              kept(record.key(), Functions.suffixed(record.value(), "p" + number++), record.timestamp()));
      if (child.isNull()) {
        context.forward(forwarded);
      } else {
        context.forward(forwarded, child.asText());
      }
    }
  }

  private Object kept(Object key, Object value, long timestamp) {
    Object kept = value;
    if (store != null) {
      String name = Functions.keyText(key);
      kept = Functions.joined(store.get(name), kept);
      store.put(name, (String) kept);
    }
    if (table != null && key != null) {
      kept = Functions.joined(ValueAndTimestamp.getValueOrNull(table.get(key)), kept);
      if (step.get("writes").asBoolean()) {
        table.put(key, ValueAndTimestamp.make(kept, timestamp));
      }
    }
    if (lists != null) {
      String name = Functions.keyText(key);
      lists.put(name, ValueAndTimestamp.make((String) kept, timestamp), timestamp - timestamp % WINDOW_MS);
      List<String> found = new ArrayList<>();
      try (WindowStoreIterator<ValueAndTimestamp<String>> values = lists.fetch(name, 0, timestamp)) {
        values.forEachRemaining(pair -> found.add(pair.value.value() + "@" + pair.value.timestamp()));
      }
      kept = Functions.joined(String.join(",", found), kept);
    }
    if (global != null) {
      kept = Functions.joined(global.get(Functions.text(key)), kept);
    }
    return kept;
  }
}
