package hindstream.old;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Counts some records of each key. */
public final class App {
  private App() {}

  static Topology counted() {
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("flights", Consumed.with(Serdes.String(), Serdes.Long()))
        .filter((key, value) -> value < 10)
        .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
        .count(Materialized.with(Serdes.String(), Serdes.Long()))
        .toStream()
        .to("out", Produced.with(Serdes.String(), Serdes.Long()));
    return builder.build();
  }
}
