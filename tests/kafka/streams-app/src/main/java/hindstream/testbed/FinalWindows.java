package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Counts of topic "amounts" (longs) by tumbling windows, sliding ones and sessions, forwarded when these close. */
final class FinalWindows {
  private static final Duration SIZE = Duration.ofMinutes(1);
  private static final Duration GRACE = Duration.ofSeconds(10);

  private FinalWindows() {}

  static void define(StreamsBuilder builder, Settings settings) {
    KGroupedStream<String, Long> amounts =
        builder.stream(settings.topic("amounts"), Consumed.with(String(), Long()).withName("amounts"))
            .groupByKey(Grouped.with("amounts-by-key", String(), Long()));
    EmitStrategy whenClosed = EmitStrategy.onWindowClose();
    amounts
        .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
        .emitStrategy(whenClosed)
        .count(Named.as("tumbling"), Materialized.as("tumbling-store"));
    amounts
        .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SIZE, GRACE))
        .emitStrategy(whenClosed)
        .count(Named.as("sliding"), Materialized.as("sliding-store"));
    amounts
        .windowedBy(SessionWindows.ofInactivityGapAndGrace(SIZE, GRACE))
        .emitStrategy(whenClosed)
        .count(Named.as("session"), Materialized.as("session-store"));
  }
}
