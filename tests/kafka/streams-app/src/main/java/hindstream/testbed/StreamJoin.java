package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;

/**
 * Join of two streams within a window: topics "asks" and "bids" (strings) give "pairs": "ask+bid".
 *
 * <p>Settings: topology.window.size.ms (ten seconds), topology.window.grace.ms (five seconds),
 * topology.join.inner (else it is an outer one).
 */
final class StreamJoin {
  private StreamJoin() {}

  static void define(StreamsBuilder builder, Settings settings) {
    Duration size = settings.duration("topology.window.size.ms", Duration.ofSeconds(10));
    Duration grace = settings.duration("topology.window.grace.ms", Duration.ofSeconds(5));
    KStream<String, String> asks =
        builder.stream(settings.topic("asks"), Consumed.with(String(), String()).withName("asks"));
    KStream<String, String> bids =
        builder.stream(settings.topic("bids"), Consumed.with(String(), String()).withName("bids"));
    ValueJoiner<String, String, String> joiner = (ask, bid) -> ask + "+" + bid;
    JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(size, grace);
    StreamJoined<String, String, String> joined =
        StreamJoined.with(String(), String(), String()).withName("pair").withStoreName("pair");
    (settings.has("topology.join.inner")
            ? asks.join(bids, joiner, windows, joined)
            : asks.outerJoin(bids, joiner, windows, joined))
        .to(settings.topic("pairs"), Produced.with(String(), String()).withName("pairs"));
  }
}
