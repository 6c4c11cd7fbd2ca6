package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * Count of each session, as it changes: topic "visits" (strings) gives "sessions".
 *
 * <p>Settings: topology.session.gap.ms (thirty seconds), topology.session.grace.ms (ten seconds).
 */
final class Sessions {
  private Sessions() {}

  static void define(StreamsBuilder builder, Settings settings) {
    Duration gap = settings.duration("topology.session.gap.ms", Duration.ofSeconds(30));
    Duration grace = settings.duration("topology.session.grace.ms", Duration.ofSeconds(10));
    builder.stream(settings.topic("visits"), Consumed.with(String(), String()).withName("visits"))
        .groupByKey(Grouped.with("visits-by-key", String(), String()))
        .windowedBy(SessionWindows.ofInactivityGapAndGrace(gap, grace))
        .count(Named.as("session-count"), Materialized.as("sessions-store"))
        .toStream(Named.as("sessions-stream"))
        .to(
            settings.topic("sessions"),
            Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), Long()).withName("sessions"));
  }
}
