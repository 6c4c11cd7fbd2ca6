package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * Final count and sum of each key and tumbling window: topic "amounts" (longs) gives "counts" and "sums".
 *
 * <p>Settings: topology.window.size.ms (a minute), topology.window.grace.ms (ten seconds),
 * topology.factor, by which amounts are multiplied (one).
 */
final class Windows {
  private Windows() {}

  static void define(StreamsBuilder builder, Settings settings) {
    Duration size = settings.duration("topology.window.size.ms", Duration.ofMinutes(1));
    Duration grace = settings.duration("topology.window.grace.ms", Duration.ofSeconds(10));
    Serde<Windowed<String>> key = WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis());
    long factor = settings.has("topology.factor") ? Long.parseLong(settings.text("topology.factor")) : 1;
    TimeWindowedKStream<String, Long> windows =
        builder.stream(settings.topic("amounts"), Consumed.with(String(), Long()).withName("amounts"))
            .mapValues(amount -> factor * amount, Named.as("factor"))
            .groupByKey(Grouped.with("amounts-by-key", String(), Long()))
            .windowedBy(TimeWindows.ofSizeAndGrace(size, grace));
    windows
        .count(Named.as("count"), Materialized.as("count-store"))
        .suppress(whenClosed("final-counts"))
        .toStream(Named.as("counts-stream"))
        .to(settings.topic("counts"), Produced.with(key, Long()).withName("counts"));
    KTable<Windowed<String>, Long> sums =
        windows.reduce(Long::sum, Named.as("sum"), Materialized.as("sum-store"));
    sums.suppress(whenClosed("final-sums"))
        .toStream(Named.as("sums-stream"))
        .to(settings.topic("sums"), Produced.with(key, Long()).withName("sums"));
  }

  /** Its changelog is that of the store "NAME-store". */
  private static Suppressed<Windowed<?>> whenClosed(String name) {
    return Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName(name);
  }
}
