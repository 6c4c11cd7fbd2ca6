package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** A topology of which only the names matter (tests/differential/naming.py): how Kafka Streams describes it. */
final class NamingProgram {
  private static final ValueJoiner<Object, Object, Object> JOINER = (left, right) -> left;
  private static final Duration MS = Duration.ofMillis(10);

  private final Properties settings;
  private final StreamsBuilder builder;
  private final List<Object> made = new ArrayList<>();

  NamingProgram(Properties settings) {
    this.settings = settings;
    builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
  }

  /** The text of the topology that these steps make. */
  String describe(JsonNode steps) {
    for (JsonNode step : steps) {
      if (step.get("op").asText().equals("split")) {
        made.add(null);
        split(stream(step, "of"), step, named(step));
      } else {
        made.add(make(step));
      }
    }
    return builder.build(settings).describe().toString();
  }

  private Object make(JsonNode step) {
    return switch (step.get("op").asText()) {
      case "stream", "table", "global_table", "add_state_store" -> source(step);
      case "table_join", "table_left_join", "table_outer_join", "foreign_key_join", "foreign_key_left_join",
          "stream_table_join", "stream_table_left_join", "global_join", "global_left_join", "stream_join",
          "stream_left_join", "stream_outer_join", "merge" ->
          joined(step);
      case "count", "reduce", "aggregate" -> aggregated(step);
      case "windowed_by" -> windowed(step);
      case "cogroup" -> CogroupSteps.named(groupedStream(step, "of"), groupedStream(step, "with"), step);
      case "suppress", "suppress_final" -> suppressed(step);
      case "group_by", "group_by_key" -> grouped(step);
      default -> {
        if (of(step) instanceof KTable) {
          yield ofTable(step);
        }
        yield ofStream(step);
      }
    };
  }

  // --- what a step says ---------------------------------------------------------------------------

  private Object of(JsonNode step) {
    return made.get(step.get("of").asInt());
  }

  @SuppressWarnings("unchecked")
  private KStream<Object, Object> stream(JsonNode step, String field) {
    return (KStream<Object, Object>) made.get(step.get(field).asInt());
  }

  @SuppressWarnings("unchecked")
  private KTable<Object, Object> table(JsonNode step, String field) {
    return (KTable<Object, Object>) made.get(step.get(field).asInt());
  }

  /** Null if the step names none. */
  @SuppressWarnings("unchecked")
  private KGroupedStream<Object, Object> groupedStream(JsonNode step, String field) {
    return step.has(field) ? (KGroupedStream<Object, Object>) made.get(step.get(field).asInt()) : null;
  }

  private static Named named(JsonNode step) {
    return step.hasNonNull("name") ? Named.as(step.get("name").asText()) : null;
  }

  private static boolean materialized(JsonNode step) {
    return step.hasNonNull("store");
  }

  /** "" stands for a Materialized without a name. */
  private static <S extends StateStore> Materialized<Object, Object, S> store(JsonNode step) {
    String name = step.get("store").asText();
    return name.isEmpty() ? Materialized.with(null, null) : Materialized.as(name);
  }

  private static Materialized<Object, Object, org.apache.kafka.streams.state.KeyValueStore<Bytes, byte[]>> keyValue(
      JsonNode step) {
    if (step.path("versioned").asBoolean()) {
      return Materialized.as(
          Stores.persistentVersionedKeyValueStore(step.get("store").asText(), Duration.ofMillis(1000)));
    }
    return store(step);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static <S extends StateStore> Materialized<Object, Long, S> longs(JsonNode step) {
    return (Materialized) store(step);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Materialized<Object, Long, org.apache.kafka.streams.state.KeyValueStore<Bytes, byte[]>> keyValueLongs(
      JsonNode step) {
    return (Materialized) keyValue(step);
  }

  // --- sources ------------------------------------------------------------------------------------

  private Object source(JsonNode step) {
    String op = step.get("op").asText();
    if (op.equals("add_state_store")) {
      return builder.addStateStore(
          Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(step.get("store").asText()), null, null));
    }
    String topic = step.get("topic").asText();
    Consumed<Object, Object> consumed =
        step.hasNonNull("name") ? Consumed.as(step.get("name").asText()) : null;
    if (step.has("pattern")) {
      Pattern pattern = Pattern.compile(step.get("pattern").asText());
      return consumed == null ? builder.stream(pattern) : builder.stream(pattern, consumed);
    }
    if (op.equals("stream")) {
      List<String> topics = new ArrayList<>(List.of(topic));
      step.path("more").forEach(another -> topics.add(another.asText()));
      return consumed == null ? builder.stream(topics) : builder.stream(topics, consumed);
    }
    if (op.equals("global_table")) {
      if (materialized(step)) {
        return consumed == null
            ? builder.globalTable(topic, keyValue(step))
            : builder.globalTable(topic, consumed, keyValue(step));
      }
      return consumed == null ? builder.globalTable(topic) : builder.globalTable(topic, consumed);
    }
    if (materialized(step)) {
      return consumed == null
          ? builder.table(topic, keyValue(step))
          : builder.table(topic, consumed, keyValue(step));
    }
    return consumed == null ? builder.table(topic) : builder.table(topic, consumed);
  }

  // --- streams ------------------------------------------------------------------------------------

  private Object ofStream(JsonNode step) {
    KStream<Object, Object> stream = stream(step, "of");
    Named named = named(step);
    switch (step.get("op").asText()) {
      case "filter":
        return named == null ? stream.filter((k, v) -> true) : stream.filter((k, v) -> true, named);
      case "filter_not":
        return named == null ? stream.filterNot((k, v) -> true) : stream.filterNot((k, v) -> true, named);
      case "map_values":
        return named == null ? stream.mapValues(v -> v) : stream.mapValues(v -> v, named);
      case "map":
        return named == null
            ? stream.map((k, v) -> KeyValue.pair(k, v))
            : stream.map((k, v) -> KeyValue.pair(k, v), named);
      case "select_key":
        return named == null ? stream.selectKey((k, v) -> k) : stream.selectKey((k, v) -> k, named);
      case "flat_map":
        return named == null
            ? stream.flatMap((k, v) -> List.<KeyValue<Object, Object>>of())
            : stream.flatMap((k, v) -> List.<KeyValue<Object, Object>>of(), named);
      case "flat_map_values":
        return named == null ? stream.flatMapValues(v -> List.of()) : stream.flatMapValues(v -> List.of(), named);
      case "peek":
        return named == null ? stream.peek((k, v) -> {}) : stream.peek((k, v) -> {}, named);
      case "foreach":
        if (named == null) {
          stream.foreach((k, v) -> {});
        } else {
          stream.foreach((k, v) -> {}, named);
        }
        return null;
      case "print":
        Printed<Object, Object> printed = Printed.toSysOut();
        stream.print(named == null ? printed : printed.withName(step.get("name").asText()));
        return null;
      case "repartition":
        return named == null
            ? stream.repartition()
            : stream.repartition(Repartitioned.as(step.get("name").asText()));
      case "process":
        return processed(stream, step, named);
      case "process_values":
        return processedValues(stream, step, named);
      case "to_table":
        if (materialized(step)) {
          return named == null ? stream.toTable(keyValue(step)) : stream.toTable(named, keyValue(step));
        }
        return named == null ? stream.toTable() : stream.toTable(named);
      case "to":
        if (named == null) {
          stream.to(step.get("topic").asText());
        } else {
          stream.to(step.get("topic").asText(), Produced.as(step.get("name").asText()));
        }
        return null;
      default:
        throw new IllegalStateException(step.toString());
    }
  }

  private static String[] storeNames(JsonNode step) {
    List<String> names = new ArrayList<>();
    step.path("stores").forEach(name -> names.add(name.asText()));
    return names.toArray(new String[0]);
  }

  private static Object processed(KStream<Object, Object> stream, JsonNode step, Named named) {
    ProcessorSupplier<Object, Object, Object, Object> supplier =
        () ->
            new ContextualProcessor<>() {
              @Override
              public void process(Record<Object, Object> record) {}
            };
    return named == null
        ? stream.process(supplier, storeNames(step))
        : stream.process(supplier, named, storeNames(step));
  }

  private static Object processedValues(KStream<Object, Object> stream, JsonNode step, Named named) {
    FixedKeyProcessorSupplier<Object, Object, Object> supplier =
        () ->
            new ContextualFixedKeyProcessor<>() {
              @Override
              public void process(FixedKeyRecord<Object, Object> record) {}
            };
    return named == null
        ? stream.processValues(supplier, storeNames(step))
        : stream.processValues(supplier, named, storeNames(step));
  }

  /** Adds all branches to what is made, in order. */
  private void split(KStream<Object, Object> stream, JsonNode step, Named named) {
    BranchedKStream<Object, Object> split = named == null ? stream.split() : stream.split(named);
    Map<Integer, KStream<Object, Object>> branches = new TreeMap<>();
    int number = 0;
    for (JsonNode branch : step.get("branches")) {
      int place = number++;
      Branched<Object, Object> taken = Branched.withConsumer(it -> branches.put(place, it));
      if (!branch.isNull()) {
        taken = taken.withName(branch.asText());
      }
      if (place == step.get("branches").size() - 1 && step.path("default").asBoolean()) {
        split.defaultBranch(taken);
      } else {
        split.branch((k, v) -> true, taken);
      }
    }
    made.addAll(branches.values());
  }

  // --- tables -------------------------------------------------------------------------------------

  private Object ofTable(JsonNode step) {
    KTable<Object, Object> table = table(step, "of");
    Named named = named(step);
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "filter":
        if (kept) {
          return named == null
              ? table.filter((k, v) -> true, keyValue(step))
              : table.filter((k, v) -> true, named, keyValue(step));
        }
        return named == null ? table.filter((k, v) -> true) : table.filter((k, v) -> true, named);
      case "filter_not":
        if (kept) {
          return named == null
              ? table.filterNot((k, v) -> true, keyValue(step))
              : table.filterNot((k, v) -> true, named, keyValue(step));
        }
        return named == null ? table.filterNot((k, v) -> true) : table.filterNot((k, v) -> true, named);
      case "map_values":
        if (kept) {
          return named == null
              ? table.mapValues(v -> v, keyValue(step))
              : table.mapValues(v -> v, named, keyValue(step));
        }
        return named == null ? table.mapValues(v -> v) : table.mapValues(v -> v, named);
      case "transform_values":
        if (kept) {
          return named == null
              ? table.transformValues(Same::new, keyValue(step))
              : table.transformValues(Same::new, keyValue(step), named);
        }
        return named == null ? table.transformValues(Same::new) : table.transformValues(Same::new, named);
      case "to_stream":
        return named == null ? table.toStream() : table.toStream(named);
      case "to_stream_by":
        return named == null ? table.toStream((k, v) -> k) : table.toStream((k, v) -> k, named);
      default:
        throw new IllegalStateException(step.toString());
    }
  }

  private static final class Same implements ValueTransformerWithKey<Object, Object, Object> {
    @Override
    public void init(ProcessorContext context) {}

    @Override
    public Object transform(Object key, Object value) {
      return value;
    }

    @Override
    public void close() {}
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private Object suppressed(JsonNode step) {
    KTable table = table(step, "of");
    Suppressed suppressed =
        step.get("op").asText().equals("suppress")
            ? Suppressed.untilTimeLimit(MS, Suppressed.BufferConfig.unbounded())
            : Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
    return table.suppress(
        step.hasNonNull("name") ? suppressed.withName(step.get("name").asText()) : suppressed);
  }

  // --- joins --------------------------------------------------------------------------------------

  private Object joined(JsonNode step) {
    Named named = named(step);
    String op = step.get("op").asText();
    switch (op) {
      case "merge":
        return named == null
            ? stream(step, "of").merge(stream(step, "with"))
            : stream(step, "of").merge(stream(step, "with"), named);
      case "table_join", "table_left_join", "table_outer_join":
        return tablesJoined(step, named);
      case "foreign_key_join", "foreign_key_left_join":
        return joinedByForeignKey(step);
      case "stream_table_join", "stream_table_left_join":
        KTable<Object, Object> table = table(step, "with");
        if (step.hasNonNull("name") || step.path("grace").asBoolean()) {
          Joined<Object, Object, Object> joined =
              step.hasNonNull("name") ? Joined.as(step.get("name").asText()) : Joined.with(null, null, null);
          if (step.path("grace").asBoolean()) {
            joined = joined.withGracePeriod(MS);
          }
          return op.equals("stream_table_join")
              ? stream(step, "of").join(table, JOINER, joined)
              : stream(step, "of").leftJoin(table, JOINER, joined);
        }
        return op.equals("stream_table_join")
            ? stream(step, "of").join(table, JOINER)
            : stream(step, "of").leftJoin(table, JOINER);
      case "global_join", "global_left_join":
        @SuppressWarnings("unchecked")
        GlobalKTable<Object, Object> global = (GlobalKTable<Object, Object>) made.get(step.get("with").asInt());
        if (op.equals("global_join")) {
          return named == null
              ? stream(step, "of").join(global, (k, v) -> k, JOINER)
              : stream(step, "of").join(global, (k, v) -> k, JOINER, named);
        }
        return named == null
            ? stream(step, "of").leftJoin(global, (k, v) -> k, JOINER)
            : stream(step, "of").leftJoin(global, (k, v) -> k, JOINER, named);
      default:
        return streamsJoined(step);
    }
  }

  private Object streamsJoined(JsonNode step) {
    JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(MS, MS);
    StreamJoined<Object, Object, Object> joined = StreamJoined.with(null, null, null);
    if (step.hasNonNull("name")) {
      joined = joined.withName(step.get("name").asText());
    }
    if (step.hasNonNull("store")) {
      joined = joined.withStoreName(step.get("store").asText());
    }
    for (String side : new String[] {"this", "other"}) {
      if (step.hasNonNull(side)) {
        WindowBytesStoreSupplier supplier =
            Stores.persistentWindowStore(step.get(side).asText(), MS.multipliedBy(3), MS.multipliedBy(2), true);
        joined =
            side.equals("this") ? joined.withThisStoreSupplier(supplier) : joined.withOtherStoreSupplier(supplier);
      }
    }
    KStream<Object, Object> stream = stream(step, "of");
    KStream<Object, Object> other = stream(step, "with");
    return switch (step.get("op").asText()) {
      case "stream_join" -> stream.join(other, JOINER, windows, joined);
      case "stream_left_join" -> stream.leftJoin(other, JOINER, windows, joined);
      default -> stream.outerJoin(other, JOINER, windows, joined);
    };
  }

  private Object tablesJoined(JsonNode step, Named named) {
    KTable<Object, Object> table = table(step, "of");
    KTable<Object, Object> other = table(step, "with");
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "table_join":
        if (kept) {
          return named == null
              ? table.join(other, JOINER, keyValue(step))
              : table.join(other, JOINER, named, keyValue(step));
        }
        return named == null ? table.join(other, JOINER) : table.join(other, JOINER, named);
      case "table_left_join":
        if (kept) {
          return named == null
              ? table.leftJoin(other, JOINER, keyValue(step))
              : table.leftJoin(other, JOINER, named, keyValue(step));
        }
        return named == null ? table.leftJoin(other, JOINER) : table.leftJoin(other, JOINER, named);
      default:
        if (kept) {
          return named == null
              ? table.outerJoin(other, JOINER, keyValue(step))
              : table.outerJoin(other, JOINER, named, keyValue(step));
        }
        return named == null ? table.outerJoin(other, JOINER) : table.outerJoin(other, JOINER, named);
    }
  }

  private Object joinedByForeignKey(JsonNode step) {
    KTable<Object, Object> table = table(step, "of");
    KTable<Object, Object> other = table(step, "with");
    Function<Object, Object> foreignKey = value -> value;
    TableJoined<Object, Object> named =
        step.hasNonNull("name") ? TableJoined.as(step.get("name").asText()) : TableJoined.with(null, null);
    if (step.get("op").asText().equals("foreign_key_join")) {
      return materialized(step)
          ? table.join(other, foreignKey, JOINER, named, keyValue(step))
          : table.join(other, foreignKey, JOINER, named);
    }
    return materialized(step)
        ? table.leftJoin(other, foreignKey, JOINER, named, keyValue(step))
        : table.leftJoin(other, foreignKey, JOINER, named);
  }

  // --- groups and windows -------------------------------------------------------------------------

  private Object grouped(JsonNode step) {
    Grouped<Object, Object> grouped =
        step.hasNonNull("name") ? Grouped.as(step.get("name").asText()) : null;
    boolean byKey = step.get("op").asText().equals("group_by_key");
    if (of(step) instanceof KTable) {
      KTable<Object, Object> table = table(step, "of");
      return grouped == null
          ? table.groupBy((k, v) -> KeyValue.pair(k, v))
          : table.groupBy((k, v) -> KeyValue.pair(k, v), grouped);
    }
    KStream<Object, Object> stream = stream(step, "of");
    if (byKey) {
      return grouped == null ? stream.groupByKey() : stream.groupByKey(grouped);
    }
    return grouped == null ? stream.groupBy((k, v) -> k) : stream.groupBy((k, v) -> k, grouped);
  }

  @SuppressWarnings("unchecked")
  private Object windowed(JsonNode step) {
    KGroupedStream<Object, Object> grouped = (KGroupedStream<Object, Object>) of(step);
    return switch (step.get("windows").asText()) {
      case "tumbling" -> grouped.windowedBy(TimeWindows.ofSizeAndGrace(MS, MS));
      case "unlimited" -> grouped.windowedBy(UnlimitedWindows.of());
      case "sliding" -> grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(MS, MS));
      default -> grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(MS, MS));
    };
  }

  @SuppressWarnings("unchecked")
  private Object aggregated(JsonNode step) {
    Object of = of(step);
    Named named = named(step);
    if (of instanceof KGroupedStream) {
      return aggregated((KGroupedStream<Object, Object>) of, step, named);
    }
    if (of instanceof KGroupedTable) {
      return aggregated((KGroupedTable<Object, Object>) of, step, named);
    }
    EmitStrategy strategy =
        step.path("final").asBoolean() ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
    if (of instanceof TimeWindowedKStream) {
      return aggregated(((TimeWindowedKStream<Object, Object>) of).emitStrategy(strategy), step, named);
    }
    return aggregated(((SessionWindowedKStream<Object, Object>) of).emitStrategy(strategy), step, named);
  }

  private static Object aggregated(KGroupedStream<Object, Object> of, JsonNode step, Named named) {
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "count":
        if (kept) {
          return named == null ? of.count(keyValueLongs(step)) : of.count(named, keyValueLongs(step));
        }
        return named == null ? of.count() : of.count(named);
      case "reduce":
        if (kept || named != null) {
          return of.reduce((a, b) -> a, named == null ? none() : named, kept ? keyValue(step) : nothing());
        }
        return of.reduce((a, b) -> a);
      default:
        if (kept || named != null) {
          return of.aggregate(() -> 0, (k, v, a) -> a, named == null ? none() : named, kept ? keyValue(step) : nothing());
        }
        return of.aggregate(() -> 0, (k, v, a) -> a);
    }
  }

  private static Object aggregated(KGroupedTable<Object, Object> of, JsonNode step, Named named) {
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "count":
        if (kept) {
          return named == null ? of.count(keyValueLongs(step)) : of.count(named, keyValueLongs(step));
        }
        return named == null ? of.count() : of.count(named);
      case "reduce":
        if (kept || named != null) {
          return of.reduce(
              (a, b) -> a, (a, b) -> a, named == null ? none() : named, kept ? keyValue(step) : nothing());
        }
        return of.reduce((a, b) -> a, (a, b) -> a);
      default:
        if (kept) {
          return of.aggregate(
              () -> 0, (k, v, a) -> a, (k, v, a) -> a, named == null ? none() : named, keyValue(step));
        }
        return named == null
            ? of.aggregate(() -> 0, (k, v, a) -> a, (k, v, a) -> a)
            : of.aggregate(() -> 0, (k, v, a) -> a, (k, v, a) -> a, named);
    }
  }

  private static Object aggregated(TimeWindowedKStream<Object, Object> of, JsonNode step, Named named) {
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "count":
        if (kept) {
          return named == null ? of.count(longs(step)) : of.count(named, longs(step));
        }
        return named == null ? of.count() : of.count(named);
      case "reduce":
        if (kept) {
          return named == null
              ? of.reduce((a, b) -> a, store(step))
              : of.reduce((a, b) -> a, named, store(step));
        }
        return named == null ? of.reduce((a, b) -> a) : of.reduce((a, b) -> a, named);
      default:
        if (kept) {
          return named == null
              ? of.aggregate(() -> 0, (k, v, a) -> a, store(step))
              : of.aggregate(() -> 0, (k, v, a) -> a, named, store(step));
        }
        return named == null
            ? of.aggregate(() -> 0, (k, v, a) -> a)
            : of.aggregate(() -> 0, (k, v, a) -> a, named);
    }
  }

  private static Object aggregated(SessionWindowedKStream<Object, Object> of, JsonNode step, Named named) {
    boolean kept = materialized(step);
    switch (step.get("op").asText()) {
      case "count":
        if (kept) {
          return named == null ? of.count(longs(step)) : of.count(named, longs(step));
        }
        return named == null ? of.count() : of.count(named);
      case "reduce":
        if (kept) {
          return named == null
              ? of.reduce((a, b) -> a, store(step))
              : of.reduce((a, b) -> a, named, store(step));
        }
        return named == null ? of.reduce((a, b) -> a) : of.reduce((a, b) -> a, named);
      default:
        if (kept) {
          return named == null
              ? of.aggregate(() -> 0, (k, v, a) -> a, (k, a, b) -> a, store(step))
              : of.aggregate(() -> 0, (k, v, a) -> a, (k, a, b) -> a, named, store(step));
        }
        return named == null
            ? of.aggregate(() -> 0, (k, v, a) -> a, (k, a, b) -> a)
            : of.aggregate(() -> 0, (k, v, a) -> a, (k, a, b) -> a, named);
    }
  }

  private static Named none() {
    return new NoName();
  }

  /** What Kafka's own overloads without a name pass on. */
  private static final class NoName extends Named {
    NoName() {
      super((String) null);
    }
  }

  private static <S extends StateStore> Materialized<Object, Object, S> nothing() {
    return Materialized.with(null, null);
  }
}
