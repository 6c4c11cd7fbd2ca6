package hindstream.benchmarks;

import java.time.Duration;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Drops a click whose key and id were forwarded within the interval: KIP-655, which Kafka Streams does not have.
 *
 * <p>The store's windows are aligned and twice as long as the interval, so what is still in force lies in one known
 * window or in two: point look-ups with a Bloom filter in place of a range scan, and whole segments that expire at once
 * in place of deletes. Longer windows need fewer look-ups, but larger memtables, and cost more.
 */
final class Deduplicate implements FixedKeyProcessor<String, Click, Click> {
  private static final int INTERVALS_PER_WINDOW = 2;

  private final String store;
  private final long intervalMs;
  private final long sizeMs;
  private FixedKeyProcessorContext<String, Click> context;
  private WindowStore<String, Forwarded> forwarded;

  private Deduplicate(String store, Duration interval) {
    this.store = store;
    this.intervalMs = interval.toMillis();
    this.sizeMs = INTERVALS_PER_WINDOW * intervalMs;
  }

  static FixedKeyProcessorSupplier<String, Click, Click> within(Duration interval, String store) {
    Duration size = interval.multipliedBy(INTERVALS_PER_WINDOW);
    Duration retention = size.multipliedBy(2); // a segment is half of it: one window
    StoreBuilder<?> builder =
        Stores.windowStoreBuilder(
            Stores.persistentWindowStore(store, retention, size, false), Serdes.String(), Binary.forwarded());
    return new FixedKeyProcessorSupplier<>() {
      @Override
      public FixedKeyProcessor<String, Click, Click> get() {
        return new Deduplicate(store, interval);
      }

      @Override
      public Set<StoreBuilder<?>> stores() {
        return Set.of(builder);
      }
    };
  }

  @Override
  public void init(FixedKeyProcessorContext<String, Click> context) {
    this.context = context;
    this.forwarded = context.getStateStore(store);
  }

  @Override
  public void process(FixedKeyRecord<String, Click> click) {
    long timestampMs = click.timestamp();
    long oldestMs = context.currentStreamTimeMs() - intervalMs;
    long offset = context.recordMetadata().map(RecordMetadata::offset).orElse(-1L);
    String id = click.key() + '\0' + click.value().id();
    Forwarded first = inForce(id, timestampMs, oldestMs);
    // The same offset again is a repetition of the same record after a failure.
    if (first != null && first.offset() != offset) {
      return;
    }
    if (first == null && timestampMs >= oldestMs) {
      forwarded.put(id, new Forwarded(timestampMs, offset), windowOf(timestampMs));
    }
    context.forward(click);
  }

  /** What the id was forwarded with, within the interval of both the record and the task's stream time. */
  private Forwarded inForce(String id, long timestampMs, long oldestMs) {
    long newestMs = Math.min(oldestMs, timestampMs) + intervalMs;
    for (long windowMs = windowOf(newestMs); windowMs >= windowOf(oldestMs); windowMs -= sizeMs) {
      Forwarded first = forwarded.fetch(id, windowMs);
      if (first != null
          && first.timestampMs() >= oldestMs
          && Math.abs(timestampMs - first.timestampMs()) <= intervalMs) {
        return first;
      }
    }
    return null;
  }

  private long windowOf(long timeMs) {
    return Math.floorDiv(timeMs, sizeMs) * sizeMs;
  }
}
