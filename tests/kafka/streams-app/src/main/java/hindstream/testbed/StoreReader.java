package hindstream.testbed;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/** The content of an application's stores, as interactive queries give it. */
final class StoreReader {
  private final KafkaStreams streams;

  StoreReader(KafkaStreams streams) {
    this.streams = streams;
  }

  /** All entries of a store, in its own order, whatever its kind, unless it is versioned. */
  void dump(String name, Consumer<Map<String, Object>> rows) {
    List<Runnable> kinds =
        List.of(() -> keyValue(name, rows), () -> windows(name, rows), () -> sessions(name, rows));
    InvalidStateStoreException refused = null;
    for (Runnable kind : kinds) {
      try {
        kind.run();
        return;
      } catch (InvalidStateStoreException anotherKind) {
        refused = anotherKind;
      }
    }
    throw refused;
  }

  /** The versions of some keys that a versioned store gives, oldest first; there is no query for all keys. */
  void versions(String name, List<String> keys, Consumer<Map<String, Object>> rows) {
    for (String key : keys) {
      MultiVersionedKeyQuery<String, Object> query =
          MultiVersionedKeyQuery.<String, Object>withKey(key).withAscendingTimestamps();
      var answers = streams.query(StateQueryRequest.inStore(name).withQuery(query)).getPartitionResults();
      for (QueryResult<VersionedRecordIterator<Object>> answer : answers.values()) {
        if (answer.isFailure()) {
          throw new IllegalStateException(answer.getFailureMessage());
        }
        try (VersionedRecordIterator<Object> versions = answer.getResult()) {
          while (versions.hasNext()) {
            VersionedRecord<Object> version = versions.next();
            Map<String, Object> row = row(key, version.value());
            row.put("timestamp_ms", version.timestamp());
            row.put("valid_to_ms", version.validTo().orElse(null));
            rows.accept(row);
          }
        }
      }
    }
  }

  private void keyValue(String name, Consumer<Map<String, Object>> rows) {
    var type = QueryableStoreTypes.<String, Object>timestampedKeyValueStore();
    ReadOnlyKeyValueStore<String, ValueAndTimestamp<Object>> store = store(name, type);
    try (KeyValueIterator<String, ValueAndTimestamp<Object>> entries = store.all()) {
      while (entries.hasNext()) {
        KeyValue<String, ValueAndTimestamp<Object>> entry = entries.next();
        Map<String, Object> row = row(entry.key, entry.value.value());
        row.put("timestamp_ms", entry.value.timestamp());
        rows.accept(row);
      }
    }
  }

  private void windows(String name, Consumer<Map<String, Object>> rows) {
    var type = QueryableStoreTypes.<String, Object>timestampedWindowStore();
    ReadOnlyWindowStore<String, ValueAndTimestamp<Object>> store = store(name, type);
    try (KeyValueIterator<Windowed<String>, ValueAndTimestamp<Object>> entries = store.all()) {
      while (entries.hasNext()) {
        KeyValue<Windowed<String>, ValueAndTimestamp<Object>> entry = entries.next();
        Map<String, Object> row = row(entry.key, entry.value.value());
        row.put("timestamp_ms", entry.value.timestamp());
        rows.accept(row);
      }
    }
  }

  private void sessions(String name, Consumer<Map<String, Object>> rows) {
    ReadOnlySessionStore<String, Object> store = store(name, QueryableStoreTypes.sessionStore());
    try (KeyValueIterator<Windowed<String>, Object> entries = store.fetch(null, null)) { // from any key to any
      while (entries.hasNext()) {
        KeyValue<Windowed<String>, Object> entry = entries.next();
        rows.accept(row(entry.key, entry.value));
      }
    }
  }

  private <T> T store(String name, QueryableStoreType<T> type) {
    return streams.store(StoreQueryParameters.fromNameAndType(name, type));
  }

  private static Map<String, Object> row(Windowed<String> key, Object value) {
    Map<String, Object> row = row(key.key(), value);
    row.put("start_ms", key.window().start());
    row.put("end_ms", key.window().end());
    return row;
  }

  private static Map<String, Object> row(String key, Object value) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("key", key);
    row.put("value", value);
    return row;
  }
}
