package hindstream.benchmarks;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.Stores;

/** The four works that are measured, as topologies of one sub-topology each. */
final class Works {
  static final String CLICKS = "clicks";
  static final String RATES = "rates";
  static final String ANSWER = "answer";

  private static final Duration DEDUPLICATION_INTERVAL = Duration.ofMinutes(10);
  private static final Duration HISTORY_RETENTION = Duration.ofHours(2);
  private static final Duration WINDOW = Duration.ofMinutes(1);
  private static final Duration GRACE = Duration.ofMinutes(10);
  private static final Serde<String> KEY = Serdes.String();

  private Works() {}

  /** Whether the work reads rates beside the clicks. */
  static boolean readsRates(String work) {
    return work.equals("W2") || work.equals("W4");
  }

  static Topology topology(String work, Properties settings) {
    StreamsBuilder builder = new StreamsBuilder();
    switch (work) {
      case "W1" -> once(clicks(builder)).to(ANSWER, Produced.with(KEY, Binary.click()));
      case "W2" -> cost(clicks(builder), rates(builder)).to(ANSWER, Produced.with(KEY, Binary.cost()));
      case "W3" -> writeTotals(clicks(builder).mapValues(Click::amount));
      case "W4" -> writeTotals(cost(once(clicks(builder)), rates(builder)).mapValues(Cost::cost));
      default -> throw new IllegalArgumentException("no such work: " + work);
    }
    return builder.build(settings);
  }

  private static KStream<String, Click> clicks(StreamsBuilder builder) {
    return builder.stream(CLICKS, Consumed.with(KEY, Binary.click()));
  }

  private static KTable<String, Long> rates(StreamsBuilder builder) {
    return builder.table(
        RATES,
        Consumed.with(KEY, Serdes.Long()),
        Materialized.as(Stores.persistentVersionedKeyValueStore("rates-by-campaign", HISTORY_RETENTION)));
  }

  private static KStream<String, Click> once(KStream<String, Click> clicks) {
    return clicks.processValues(Deduplicate.within(DEDUPLICATION_INTERVAL, "clicks-once"));
  }

  private static KStream<String, Cost> cost(KStream<String, Click> clicks, KTable<String, Long> rates) {
    return clicks.join(
        rates,
        (click, rate) -> new Cost(click.id(), click.amount() * rate),
        Joined.with(KEY, Binary.click(), Serdes.Long()));
  }

  private static void writeTotals(KStream<String, Long> amounts) {
    amounts
        .groupByKey(Grouped.with(KEY, Serdes.Long()))
        .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
        .aggregate(
            () -> Totals.NONE,
            (campaign, amount, totals) -> totals.plus(amount),
            Materialized.<String, Totals>as(
                    Stores.persistentTimestampedWindowStore("clicks-by-minute", WINDOW.plus(GRACE), WINDOW, false))
                .withKeySerde(KEY)
                .withValueSerde(Binary.totals())
                .withCachingEnabled())
        .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
        .toStream()
        .to(ANSWER, Produced.with(windowed(), Binary.totals()));
  }

  private static Serde<Windowed<String>> windowed() {
    return WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis());
  }
}
