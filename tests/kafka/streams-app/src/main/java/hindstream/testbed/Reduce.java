package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Sum by a new key, through a repartition topic: topic "sales" (strings, "region:amount") gives "totals" (longs).
 *
 * <p>The repartition topic is APPLICATION-by-region-repartition.
 */
final class Reduce {
  private Reduce() {}

  static void define(StreamsBuilder builder, Settings settings) {
    builder.stream(settings.topic("sales"), Consumed.with(String(), String()).withName("sales"))
        .map((seller, sale) -> byRegion(sale), Named.as("region-of-sale"))
        .groupByKey(Grouped.with("by-region", String(), Long()))
        .reduce(Long::sum, Named.as("total"), Materialized.as("totals-store"))
        .toStream(Named.as("totals-stream"))
        .to(settings.topic("totals"), Produced.with(String(), Long()).withName("totals"));
  }

  private static KeyValue<String, Long> byRegion(String sale) {
    int colon = sale.indexOf(':');
    return KeyValue.pair(sale.substring(0, colon), Long.valueOf(sale.substring(colon + 1)));
  }
}
