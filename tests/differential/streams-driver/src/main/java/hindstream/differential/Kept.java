package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * The stores of a processor. In one it keeps what it has forwarded last for a key, and tells it with the next; of a
 * table's store it tells what it has, and may put there what it forwards; of global and read-only ones it tells what
 * they have. Then there are stores of all kinds ({@link OwnStores}).
 */
final class Kept {
  private static final long WINDOW_MS = 10;

  private final boolean writes;
  private final KeyValueStore<String, String> store;
  private final TimestampedKeyValueStore<Object, Object> table;
  private final List<KeyValueStore<String, String>> read = new ArrayList<>();
  private final TimestampedWindowStore<String, String> lists;

  private final JsonNode ofOwn;
  private final StateStore own;

  Kept(JsonNode step, Function<String, StateStore> stores) {
    writes = step.path("writes").asBoolean();
    store = store(step, "uses", stores);
    table = store(step, "table", stores);
    for (String which : List.of("global", "read_only")) {
      if (step.hasNonNull(which)) {
        read.add(store(step, which, stores));
      }
    }
    lists = store(step, "lists", stores);
    ofOwn = step.path("own");
    own = store(ofOwn, "name", stores);
  }

  @SuppressWarnings("unchecked")
  private static <S> S store(JsonNode step, String which, Function<String, StateStore> stores) {
    return step.hasNonNull(which) ? (S) stores.apply(step.get(which).asText()) : null;
  }

  /** Builds the store in which a processor keeps all that it has forwarded for a key, by window. */
  static StoreBuilder<TimestampedWindowStore<String, String>> lists(String name) {
    return Stores.timestampedWindowStoreBuilder(
        Stores.persistentTimestampedWindowStore(name, Duration.ofHours(1), Duration.ofMillis(WINDOW_MS), true),
        Serdes.String(),
        Serdes.String());
  }

  /** Builds a store of texts. */
  static StoreBuilder<KeyValueStore<String, String>> texts(String name) {
    return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
  }

  /** A value, and what stores have told of the key. */
  Object told(Object key, Object value, long timestamp) {
    Object kept = value;
    if (store != null) {
      String name = Functions.keyText(key);
      kept = Functions.joined(store.get(name), kept);
      store.put(name, (String) kept);
    }
    if (table != null && key != null) {
      kept = Functions.joined(ValueAndTimestamp.getValueOrNull(table.get(key)), kept);
      if (writes) {
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
    if (own != null) {
      kept = Functions.joined(OwnStores.told(ofOwn, own, Functions.keyText(key), (String) kept, timestamp), kept);
    }
    for (KeyValueStore<String, String> each : read) {
      kept = Functions.joined(each.get(Functions.text(key)), kept);
    }
    return kept;
  }
}
