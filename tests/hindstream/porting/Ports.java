package hindstream.ports;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Small topologies, of which tests/hindstream/porting/ports.py has the ports. Keys are texts, values numbers. */
public final class Ports {
  private static final Serde<String> TEXT = Serdes.String();
  private static final Serde<Long> NUMBER = Serdes.Long();
  private static final Duration SIZE = Duration.ofMillis(40);
  private static final Duration GRACE = Duration.ofMillis(30);
  private static final TimeWindows WINDOWS = TimeWindows.ofSizeAndGrace(SIZE, GRACE);

  private final StreamsBuilder builder = new StreamsBuilder();
  private final KStream<String, Long> flights = builder.stream("flights", Consumed.with(TEXT, NUMBER));

  private KGroupedStream<String, Long> grouped() {
    return flights.groupByKey(Grouped.with(TEXT, NUMBER));
  }

  private KTable<String, Long> weather() {
    return builder.table("weather", Consumed.with(TEXT, NUMBER), Materialized.as("weather"));
  }

  private Topology to(KStream<String, Long> results) {
    results.to("out", Produced.with(TEXT, NUMBER));
    return builder.build();
  }

  private Topology windowed(KStream<Windowed<String>, Long> results, Duration size) {
    results.to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), NUMBER));
    return builder.build();
  }

  private static Materialized<String, Long, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>> kept() {
    return Materialized.with(TEXT, NUMBER);
  }

  public static Topology windows() {
    Ports port = new Ports();
    return port.windowed(port.grouped().windowedBy(WINDOWS).count().toStream(), SIZE);
  }

  public static Topology hopping() {
    Ports port = new Ports();
    TimeWindows windows = WINDOWS.advanceBy(Duration.ofMillis(10));
    return port.windowed(port.grouped().windowedBy(windows).count().toStream(), SIZE);
  }

  public static Topology finals() {
    Ports port = new Ports();
    return port.windowed(port.grouped().windowedBy(WINDOWS).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream(), SIZE);
  }

  public static Topology sliding() {
    Ports port = new Ports();
    SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(SIZE, GRACE);
    return port.windowed(port.grouped().windowedBy(windows).count().toStream(), SIZE);
  }

  public static Topology sessions() {
    Ports port = new Ports();
    SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(12), GRACE);
    port.grouped().windowedBy(windows).count().toStream()
        .to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), NUMBER));
    return port.builder.build();
  }

  public static Topology finalSessions() {
    Ports port = new Ports();
    SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(12), GRACE);
    port.grouped().windowedBy(windows).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream()
        .to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), NUMBER));
    return port.builder.build();
  }

  public static Topology optimized() {
    Ports port = new Ports();
    KStream<String, Long> renamed =
        port.flights.filter((key, value) -> value != null && value > 0).selectKey((key, value) -> "k" + value % 7);
    KStream<String, Long> few = renamed.filter((key, value) -> value > 3);
    KStream<String, Long> joined =
        few.join(
            few,
            (left, right) -> left * 1000 + right,
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(5), GRACE),
            StreamJoined.with(TEXT, NUMBER, NUMBER));
    renamed
        .groupByKey(Grouped.with(TEXT, NUMBER))
        .count(Materialized.<String, Long, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("counts").withKeySerde(TEXT))
        .toStream()
        .merge(joined)
        .to("out", Produced.with(TEXT, NUMBER));
    Properties properties = new Properties();
    properties.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
    return port.builder.build(properties);
  }

  public static Topology filtered() {
    Ports port = new Ports();
    return port.to(port.flights.filter((key, value) -> value != null && value <= 10));
  }

  public static Topology filteredTable() {
    Ports port = new Ports();
    return port.to(port.weather().filter((key, value) -> value > 4).toStream());
  }

  public static Topology extracted() {
    StreamsBuilder builder = new StreamsBuilder();
    builder
        .stream(
            "flights",
            Consumed.with(TEXT, NUMBER)
                .withTimestampExtractor((record, time) -> record.timestamp() - 5 * (Long) record.value()))
        .to("out", Produced.with(TEXT, NUMBER));
    return builder.build();
  }

  public static Topology joined() {
    Ports port = new Ports();
    return port.to(port.flights.join(port.weather(), (left, right) -> 1000 * left + right));
  }

  public static Topology versioned() {
    Ports port = new Ports();
    KTable<String, Long> weather =
        port.builder.table(
            "weather",
            Consumed.with(TEXT, NUMBER),
            Materialized.as(Stores.persistentVersionedKeyValueStore("weather", Duration.ofMillis(500))));
    Joined<String, Long, Long> with = Joined.with(TEXT, NUMBER, NUMBER);
    return port.to(port.flights.join(weather, (left, right) -> 1000 * left + right, with));
  }

  public static Topology joinedStreams() {
    Ports port = new Ports();
    KStream<String, Long> others = port.builder.stream("weather", Consumed.with(TEXT, NUMBER));
    JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(5), GRACE).after(Duration.ofMillis(9));
    StreamJoined<String, Long, Long> with = StreamJoined.with(TEXT, NUMBER, NUMBER);
    return port.to(port.flights.join(others, (left, right) -> 1000 * left + right, within, with));
  }

  public static Topology foreignKeys() {
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, Long> rows = builder.table("flights", Consumed.with(TEXT, NUMBER));
    KTable<String, Long> weather = builder.table("weather", Consumed.with(TEXT, NUMBER));
    rows.join(weather, value -> "k" + value % 7, (left, right) -> 1000 * left + right, kept())
        .toStream().to("out", Produced.with(TEXT, NUMBER));
    return builder.build();
  }

  public static Topology regrouped(Properties settings) {
    Ports port = new Ports();
    Grouped<String, Long> grouped = Grouped.with(TEXT, NUMBER);
    port.flights.groupBy((key, value) -> "k" + value % 5, grouped).count().toStream()
        .to("out", Produced.with(TEXT, NUMBER));
    return port.builder.build(settings);
  }

  public static Topology summed(StreamsConfig settings) {
    Ports port = new Ports();
    return port.to(port.grouped().aggregate(() -> 0L, (key, value, sum) -> sum + value, kept()).toStream());
  }

  public static KStream<String, Long> latest(StreamsBuilder builder) {
    KStream<String, Long> latest =
        builder.stream("flights", Consumed.with(TEXT, NUMBER))
            .groupByKey(Grouped.with(TEXT, NUMBER)).reduce((old, value) -> value, kept()).toStream();
    latest.to("out", Produced.with(TEXT, NUMBER));
    return latest;
  }

  public static Topology merged() {
    Ports port = new Ports();
    return port.to(port.flights.merge(port.builder.stream("weather", Consumed.with(TEXT, NUMBER))));
  }

  public static Topology branched() {
    Ports port = new Ports();
    port.flights.split()
        .branch((key, value) -> value > 10, org.apache.kafka.streams.kstream.Branched.withConsumer(many ->
            many.to("out", Produced.with(TEXT, NUMBER))))
        .branch((key, value) -> value > 5, org.apache.kafka.streams.kstream.Branched.withConsumer(some ->
            some.to("some", Produced.with(TEXT, NUMBER))));
    return port.builder.build();
  }

  public static Topology global() {
    Ports port = new Ports();
    GlobalKTable<String, Long> places =
        port.builder.globalTable("weather", Consumed.with(TEXT, NUMBER), Materialized.as("places"));
    return port.to(port.flights.join(places, (key, value) -> "k" + value % 7, (left, right) -> 1000 * left + right));
  }

  public static Topology outer() {
    Ports port = new Ports();
    KStream<String, Long> others = port.builder.stream("weather", Consumed.with(TEXT, NUMBER));
    JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(5), GRACE);
    StreamJoined<String, Long, Long> with = StreamJoined.with(TEXT, NUMBER, NUMBER);
    return port.to(port.flights.outerJoin(others, Ports::sum, within, with));
  }

  private static Long sum(Long left, Long right) {
    return 1000 * (left == null ? 99 : left) + (right == null ? 99 : right);
  }

  public static Topology outerTables() {
    Ports port = new Ports();
    KTable<String, Long> flights = port.flights.toTable(kept());
    return port.to(flights.outerJoin(port.weather(), Ports::sum, kept()).toStream());
  }

  public static Topology readBack() {
    Ports port = new Ports();
    port.flights.filter((key, value) -> value > 3).to("large", Produced.with(TEXT, NUMBER));
    return port.to(port.builder.stream("large", Consumed.with(TEXT, NUMBER)).mapValues(value -> value * 2));
  }

  public static Topology chosen() {
    Ports port = new Ports();
    port.flights.to((key, value, context) -> value > 5 ? "out" : "some", Produced.with(TEXT, NUMBER));
    return port.builder.build();
  }

  public static Topology limited() {
    Ports port = new Ports();
    Suppressed<String> calm =
        Suppressed.untilTimeLimit(Duration.ofMillis(20), Suppressed.BufferConfig.unbounded());
    return port.to(port.grouped().reduce((old, value) -> value, kept()).suppress(calm).toStream());
  }

  public static Topology unfolded() {
    Ports port = new Ports();
    return port.to(port.flights.flatMapValues(value ->
        value < 3 ? Collections.<Long>emptyList() : Arrays.asList(value, value + 1)));
  }

  public static Topology mapped() {
    Ports port = new Ports();
    return port.to(port.flights.map((key, value) -> KeyValue.pair(key + "!", value / 2)));
  }

  /** Drops what has come before; Kafka Streams has no such operator. */
  public static final Supplier<Topology> ONCE = Ports::once;

  private static Topology once() {
    Ports port = new Ports();
    port.builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), TEXT, NUMBER));
    return port.to(port.flights.process(Once::new, "seen"));
  }

  private static final class Once extends ContextualProcessor<String, Long, String, Long> {
    @Override
    public void process(Record<String, Long> record) {
      KeyValueStore<String, Long> seen = context().getStateStore("seen");
      String id = record.key() + record.value();
      if (seen.putIfAbsent(id, 1L) == null) {
        context().forward(record);
      }
    }
  }

  /** All that has a name was given it. */
  public static Topology named() {
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, Long> weather =
        builder.table("weather", Consumed.with(TEXT, NUMBER).withName("weather-in"), Materialized.as("weather-store"));
    KTable<String, Long> places = builder.table("places", Consumed.with(TEXT, NUMBER), Materialized.as("places-store"));
    KStream<String, Long> flights =
        builder.stream("flights", Consumed.with(TEXT, NUMBER).withName("flights-in"))
            .filterNot((key, value) -> value == null, Named.as("known"))
            .mapValues(value -> value + 1, Named.as("later"))
            .peek((key, value) -> {}, Named.as("looked-at"));
    flights
        .selectKey((key, value) -> "k" + value % 3, Named.as("by-rest"))
        .groupByKey(Grouped.<String, Long>with(TEXT, NUMBER).withName("rests"))
        .windowedBy(WINDOWS)
        .count(Named.as("counted"), Materialized.as("counts"))
        .suppress(Suppressed.untilTimeLimit(Duration.ofMillis(20), Suppressed.BufferConfig.unbounded()).withName("calm"))
        .toStream(Named.as("counts-stream"))
        .to("counts-out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 40), NUMBER).withName("end"));
    flights
        .leftJoin(weather, (left, right) -> left, Joined.<String, Long, Long>with(TEXT, NUMBER, NUMBER).withName("with-weather"))
        .repartition(org.apache.kafka.streams.kstream.Repartitioned.<String, Long>with(TEXT, NUMBER).withName("again"))
        .toTable(Named.as("last"), Materialized.<String, Long, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("lasts").withKeySerde(TEXT).withValueSerde(NUMBER))
        .filter((key, value) -> value > 3, Named.as("large"), Materialized.as("large-store"))
        .join(places, (left, right) -> left, Named.as("tables"), Materialized.as("joined-store"))
        .toStream(Named.as("out-stream"))
        .to("out", Produced.with(TEXT, NUMBER).withName("out-end"));
    return builder.build();
  }

  /** Values are JSON, and get a field. */
  public static Topology json() {
    StreamsBuilder builder = new StreamsBuilder();
    builder
        .stream("readings", Consumed.with(TEXT, TEXT))
        .mapValues(value -> value.replace("}", ", \"more\": 1}"))
        .to("out", Produced.with(TEXT, TEXT));
    return builder.build();
  }

  /** Nothing passes. */
  public static Topology silent() {
    Ports port = new Ports();
    return port.to(port.flights.filter((key, value) -> value < 0));
  }

  /** Fails at the first large value. */
  public static Topology failing() {
    Ports port = new Ports();
    return port.to(port.flights.mapValues(value -> checked(value)));
  }

  private static Long checked(Long value) {
    if (value > 12) {
      throw new IllegalStateException("a delay of " + value);
    }
    return value;
  }

  public static Topology wants(String what) {
    throw new UnsupportedOperationException(what);
  }
}
