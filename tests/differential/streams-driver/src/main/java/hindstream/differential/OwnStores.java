package hindstream.differential;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.AggregationWithHeaders;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;

/** Stores that processors have for themselves: tests/differential/own_stores.py does the same. */
final class OwnStores {
  private static final Serde<String> TEXT = Serdes.String();

  private OwnStores() {}

  static StoreBuilder<? extends StateStore> builder(JsonNode own) {
    String name = own.get("name").asText();
    Duration kept = Duration.ofMillis(own.get("kept").asLong());
    Duration size = Duration.ofMillis(own.get("size").asLong());
    return switch (own.get("kind").asText()) {
      case "plain" -> Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), TEXT, TEXT);
      case "in_memory" -> Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), TEXT, TEXT);
      case "timestamped" ->
          Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore(name), TEXT, TEXT);
      case "headers" ->
          Stores.timestampedKeyValueStoreWithHeadersBuilder(
              Stores.persistentTimestampedKeyValueStoreWithHeaders(name), TEXT, TEXT);
      case "window" ->
          Stores.windowStoreBuilder(Stores.persistentWindowStore(name, kept, size, false), TEXT, TEXT);
      case "timestamped_window" ->
          Stores.timestampedWindowStoreBuilder(
              Stores.persistentTimestampedWindowStore(name, kept, size, false), TEXT, TEXT);
      case "headers_window" ->
          Stores.timestampedWindowStoreWithHeadersBuilder(
              Stores.persistentTimestampedWindowStoreWithHeaders(name, kept, size, false), TEXT, TEXT);
      case "session" -> Stores.sessionStoreBuilder(Stores.persistentSessionStore(name, kept), TEXT, TEXT);
      case "headers_session" ->
          Stores.sessionStoreWithHeadersBuilder(Stores.persistentSessionStoreWithHeaders(name, kept), TEXT, TEXT);
      default ->
          Stores.versionedKeyValueStoreBuilder(Stores.persistentVersionedKeyValueStore(name, kept), TEXT, TEXT);
    };
  }

  /** Puts a value, or deletes the key; what the store then has. */
  static String told(JsonNode own, StateStore store, String key, String value, long timestamp) {
    String kind = own.get("kind").asText();
    if (kind.equals("versioned")) {
      return versions(own, store, key, value, timestamp);
    }
    if (kind.endsWith("session")) {
      return sessions(own, store, key, value, timestamp);
    }
    return kind.endsWith("window")
        ? windows(own, store, key, value, timestamp)
        : keys(own, store, key, value, timestamp);
  }

  @SuppressWarnings("unchecked")
  private static String keys(JsonNode own, StateStore of, String key, String value, long timestamp) {
    KeyValueStore<String, Object> store = (KeyValueStore<String, Object>) of;
    String read = own.get("read").asText();
    Object given = given(own, value, timestamp);
    if (read.equals("if_absent") && given != null) {
      return shown(store.putIfAbsent(key, given));
    }
    if (read.equals("delete") && timestamp % 3 == 0) {
      return shown(store.delete(key));
    }
    store.put(key, given);
    return switch (read) {
      case "range" -> all(store.range("a", "b"));
      case "reverse_range" -> all(store.reverseRange(null, "b"));
      case "all" -> all(store.all());
      case "reverse_all" -> all(store.reverseAll());
      case "prefix" -> all(store.prefixScan("a", new StringSerializer()));
      case "count" -> String.valueOf(count(store.all()));
      default -> shown(store.get(key));
    };
  }

  @SuppressWarnings("unchecked")
  private static String windows(JsonNode own, StateStore of, String key, String value, long timestamp) {
    WindowStore<String, Object> store = (WindowStore<String, Object>) of;
    long size = own.get("size").asLong();
    long start = timestamp - timestamp % size;
    store.put(key, given(own, value, timestamp), start);
    Instant from = Instant.ofEpochMilli(Math.max(0, start - 3 * size));
    Instant to = Instant.ofEpochMilli(start + 2 * size);
    return switch (own.get("read").asText()) {
      case "one" -> shown(store.fetch(key, start));
      case "fetch" -> all(store.fetch(key, from, to));
      case "backward_fetch" -> all(store.backwardFetch(key, from, to));
      case "range" -> byKey(store.fetch("a", "b", from, to));
      case "backward_range" -> byKey(store.backwardFetch("a", "b", from, to));
      case "time" -> byKey(store.fetchAll(from, to));
      case "backward_time" -> byKey(store.backwardFetchAll(from, to));
      case "all" -> byKey(store.all());
      default -> byKey(store.backwardAll());
    };
  }

  @SuppressWarnings("unchecked")
  private static String sessions(JsonNode own, StateStore of, String key, String value, long timestamp) {
    SessionStore<String, Object> store = (SessionStore<String, Object>) of;
    long size = own.get("size").asLong();
    long start = timestamp - timestamp % size;
    Windowed<String> session = new Windowed<>(key, new SessionWindow(start, timestamp));
    if (value == null) {
      store.remove(session);
    } else {
      store.put(session, given(own, value, timestamp));
    }
    long from = Math.max(0, timestamp - 3 * size);
    long to = timestamp + size;
    return switch (own.get("read").asText()) {
      case "one" -> shown(store.fetchSession(key, start, timestamp));
      case "fetch" -> all(store.fetch(key));
      case "backward_fetch" -> all(store.backwardFetch(key));
      case "find" -> all(store.findSessions(key, from, to));
      case "backward_find" -> all(store.backwardFindSessions(key, from, to));
      case "range" -> byKey(store.fetch("a", "b"));
      default -> byKey(store.findSessions("a", "b", from, to));
    };
  }

  @SuppressWarnings("unchecked")
  private static String versions(JsonNode own, StateStore of, String key, String value, long timestamp) {
    VersionedKeyValueStore<String, String> store = (VersionedKeyValueStore<String, String>) of;
    String read = own.get("read").asText();
    if (value == null || (read.equals("delete") && timestamp % 3 == 0)) {
      return shown(store.delete(key, timestamp));
    }
    long done = store.put(key, value, timestamp);
    long asOf = Math.max(0, timestamp - own.get("size").asLong());
    return done + " " + shown(read.equals("as_of") ? store.get(key, asOf) : store.get(key));
  }

  /** What a store of a kind keeps. */
  private static Object given(JsonNode own, String value, long timestamp) {
    if (value == null) {
      return null;
    }
    Headers headers =
        new RecordHeaders().add("h", value.substring(0, Math.min(3, value.length())).getBytes(UTF_8));
    return switch (own.get("kind").asText()) {
      case "timestamped", "timestamped_window" -> ValueAndTimestamp.make(value, timestamp);
      case "headers", "headers_window" -> ValueTimestampHeaders.make(value, timestamp, headers);
      case "headers_session" -> AggregationWithHeaders.make(value, headers);
      default -> value;
    };
  }

  private static String all(KeyValueIterator<?, ?> found) {
    StringJoiner shown = new StringJoiner(",");
    try (found) {
      found.forEachRemaining(pair -> shown.add(Functions.keyText(pair.key) + "=" + shown(pair.value)));
    }
    return shown.toString();
  }

  /** The windows of several keys, each key's in their order: RocksDB's of the keys is by segment. */
  private static String byKey(KeyValueIterator<Windowed<String>, ?> found) {
    Map<String, StringJoiner> shown = new TreeMap<>();
    try (found) {
      found.forEachRemaining(
          pair ->
              shown
                  .computeIfAbsent(pair.key.key(), key -> new StringJoiner(","))
                  .add(Functions.keyText(pair.key) + "=" + shown(pair.value)));
    }
    return shown.values().stream().map(StringJoiner::toString).collect(joining(","));
  }

  private static int count(KeyValueIterator<?, ?> found) {
    int count = 0;
    try (found) {
      for (; found.hasNext(); found.next()) {
        count++;
      }
    }
    return count;
  }

  private static String shown(Object value) {
    if (value instanceof ValueAndTimestamp<?> kept) {
      return kept.value() + "@" + kept.timestamp();
    }
    if (value instanceof ValueTimestampHeaders<?> kept) {
      return kept.value() + "@" + kept.timestamp() + shown(kept.headers());
    }
    if (value instanceof AggregationWithHeaders<?> kept) {
      return kept.aggregation() + shown(kept.headers());
    }
    return value instanceof VersionedRecord<?> kept
        ? kept.value() + "@" + kept.timestamp()
        : String.valueOf(value);
  }

  private static String shown(Headers headers) {
    StringBuilder shown = new StringBuilder();
    headers.forEach(header -> shown.append("/" + header.key() + ":" + new String(header.value(), UTF_8)));
    return shown.toString();
  }
}
