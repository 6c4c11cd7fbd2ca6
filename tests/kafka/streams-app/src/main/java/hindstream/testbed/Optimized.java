package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * What topology.optimization changes: topic "sales" (strings, "region:amount") gives "counts" by region (longs), and
 * "pairs" of amounts that are near in time. With all, there is one repartition topic, and one store for the pairs.
 */
final class Optimized {
  private static final JoinWindows WINDOWS =
      JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(900), Duration.ofSeconds(100));

  private Optimized() {}

  static void define(StreamsBuilder builder, Settings settings) {
    KStream<String, String> sales =
        builder.stream(settings.topic("sales"), Consumed.with(String(), String())).map((seller, sale) -> parts(sale));
    sales
        .groupByKey(Grouped.with(String(), String()))
        .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts-store").withKeySerde(String()))
        .toStream()
        .to(settings.topic("counts"), Produced.with(String(), Long()));
    sales
        .join(sales, (one, other) -> one + "+" + other, WINDOWS, StreamJoined.with(String(), String(), String()))
        .to(settings.topic("pairs"), Produced.with(String(), String()));
  }

  private static KeyValue<String, String> parts(String sale) {
    int colon = sale.indexOf(':');
    return KeyValue.pair(sale.substring(0, colon), sale.substring(colon + 1));
  }
}
