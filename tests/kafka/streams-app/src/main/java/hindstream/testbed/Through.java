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
 * As {@link Reduce}, but through a topic of its own: "sales" gives "by-region" (longs), and that gives "totals".
 */
final class Through {
  private Through() {}

  static void define(StreamsBuilder builder, Settings settings) {
    builder.stream(settings.topic("sales"), Consumed.with(String(), String()).withName("sales"))
        .map((seller, sale) -> byRegion(sale), Named.as("region-of-sale"))
        .to(settings.topic("by-region"), Produced.with(String(), Long()).withName("by-region"));
    builder.stream(settings.topic("by-region"), Consumed.with(String(), Long()).withName("regional-sales"))
        .groupByKey(Grouped.with(String(), Long()))
        .reduce(Long::sum, Named.as("total"), Materialized.as("totals-store"))
        .toStream(Named.as("totals-stream"))
        .to(settings.topic("totals"), Produced.with(String(), Long()).withName("totals"));
  }

  private static KeyValue<String, Long> byRegion(String sale) {
    int colon = sale.indexOf(':');
    return KeyValue.pair(sale.substring(0, colon), Long.valueOf(sale.substring(colon + 1)));
  }
}
