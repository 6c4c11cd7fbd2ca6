package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import java.util.Set;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * A processor that drops what it has seen within half a minute: topic "readings" (strings) gives "remembered".
 *
 * <p>A value there is "value that was before>value#how many there were". Each kind of store that is not versioned
 * holds some of it; that of sessions no value but "b".
 */
final class Remembered {
  private static final Duration APART = Duration.ofSeconds(30);
  private static final Duration RETENTION = Duration.ofMinutes(3);

  private Remembered() {}

  static void define(StreamsBuilder builder, Settings settings) {
    builder
        .stream(settings.topic("readings"), Consumed.with(String(), String()).withName("readings"))
        .process(new Supplier(), Named.as("remember"))
        .to(settings.topic("remembered"), Produced.with(String(), String()).withName("remembered"));
  }

  private static final class Supplier implements ProcessorSupplier<String, String, String, String> {
    @Override
    public Processor<String, String, String, String> get() {
      return new Remember();
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(
          Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("last-store"), String(), String()),
          Stores.timestampedKeyValueStoreBuilder(
              Stores.persistentTimestampedKeyValueStore("count-store"), String(), Long()),
          Stores.windowStoreBuilder(
              Stores.persistentWindowStore("seen-store", RETENTION, APART, false), String(), Long()),
          Stores.sessionStoreBuilder(
              Stores.persistentSessionStore("minutes-store", RETENTION), String(), String()));
    }
  }

  private static final class Remember extends ContextualProcessor<String, String, String, String> {
    private KeyValueStore<String, String> last;
    private TimestampedKeyValueStore<String, Long> count;
    private WindowStore<String, Long> seen;
    private SessionStore<String, String> minutes;

    @Override
    public void init(ProcessorContext<String, String> context) {
      super.init(context);
      last = context.getStateStore("last-store");
      count = context.getStateStore("count-store");
      seen = context.getStateStore("seen-store");
      minutes = context.getStateStore("minutes-store");
    }

    @Override
    public void process(Record<String, String> record) {
      long at = record.timestamp();
      String id = record.key() + "|" + record.value();
      try (WindowStoreIterator<Long> before = seen.fetch(id, at - APART.toMillis(), at + APART.toMillis())) {
        if (before.hasNext()) {
          return;
        }
      }
      seen.put(id, at, at);
      String previous = last.get(record.key());
      last.put(record.key(), record.value());
      ValueAndTimestamp<Long> counted = count.get(record.key());
      long now = counted == null ? 1 : counted.value() + 1;
      count.put(record.key(), ValueAndTimestamp.make(now, at));
      if (record.value().equals("b")) {
        minutes.put(new Windowed<>(record.key(), new SessionWindow(at - at % 60_000, at)), record.value());
      }
      context().forward(record.withValue(previous + ">" + record.value() + "#" + now));
    }
  }
}
