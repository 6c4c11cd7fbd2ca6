package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.ForeachAction;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueMapperWithKey;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Builds a program's topology: each step makes a stream or a table of those before it. */
final class TopologyOfProgram {

  private final StreamsBuilder builder = new StreamsBuilder();
  private final List<Object> made = new ArrayList<>();
  private final Set<String> sinks = new LinkedHashSet<>();
  private final Set<String> stores = new HashSet<>();
  private final Map<String, List<List<Object>>> observed = new HashMap<>();
  private final JsonNode steps;

  TopologyOfProgram(JsonNode steps) {
    this.steps = steps;
  }

  /** The topology, optimised as these settings say. */
  Topology build(Properties settings) {
    for (JsonNode step : steps) {
      made.add(made(step));
    }
    return builder.build(settings);
  }

  /** The topics that are written. */
  Set<String> sinks() {
    return sinks;
  }

  /** What peek and foreach have been shown, by step. */
  Map<String, List<List<Object>>> observed() {
    return observed;
  }

  private ForeachAction<Object, Object> observing() {
    String name = "seen" + made.size();
    return (key, value) ->
        observed.computeIfAbsent(name, step -> new ArrayList<>()).add(Arrays.asList(Run.shown(key), value));
  }

  private Object made(JsonNode step) {
    return switch (step.get("op").asText()) {
      case "stream" -> streamOf(step);
      case "table" -> table(step);
      case "global_table" -> globalTable(step);
      case "map_values", "filter", "filter_not" -> derived(step);
      case "transform_values", "to_stream", "suppress", "suppress_windows", "group_by", "table_join", "foreign_key_join" -> ofTable(step);
      case "to" -> sink(step);
      case "to_one_of" -> sinkOfEach(step);
      case "windowed" -> WindowedSteps.aggregated(grouped(step), step);
      case "cogroup", "cogroup_windowed" ->
          CogroupSteps.aggregated(
              stream(step, "of").groupByKey(), step.has("with") ? stream(step, "with").groupByKey() : null, step);
      default -> ofStream(step);
    };
  }

  // --- what is there of streams and of tables ---------------------------------------------------------------------

  private Object streamOf(JsonNode step) {
    if (step.has("pattern")) {
      return builder.stream(Pattern.compile(step.get("pattern").asText()));
    }
    return step.has("extractor") ? builder.stream(topics(step), consumed(step)) : builder.stream(topics(step));
  }

  private Object table(JsonNode step) {
    String topic = step.get("topic").asText();
    if (step.has("extractor")) {
      return step.hasNonNull("store")
          ? builder.table(topic, consumed(step), store(step))
          : builder.table(topic, consumed(step));
    }
    return step.hasNonNull("store") ? builder.table(topic, store(step)) : builder.table(topic);
  }

  private static Consumed<Object, Object> consumed(JsonNode step) {
    String extractor = step.get("extractor").asText();
    return Consumed.with(
        (record, partitionTime) -> Functions.extracted(extractor, record.value(), record.timestamp(), partitionTime));
  }

  private Object globalTable(JsonNode step) {
    String topic = step.get("topic").asText();
    return step.hasNonNull("store") ? builder.globalTable(topic, store(step)) : builder.globalTable(topic);
  }

  private Object derived(JsonNode step) {
    String op = step.get("op").asText();
    if (made.get(step.get("of").asInt()) instanceof KTable) {
      KTable<Object, Object> table = table(step, "of");
      if (op.equals("map_values")) {
        return step.hasNonNull("store")
            ? table.mapValues(suffixing(step), store(step))
            : table.mapValues(suffixing(step));
      }
      int modulus = step.get("modulus").asInt();
      int rest = step.get("rest").asInt();
      boolean not = op.equals("filter_not");
      if (step.hasNonNull("store")) {
        return not
            ? table.filterNot((key, value) -> Functions.passes(value, modulus, rest), store(step))
            : table.filter((key, value) -> Functions.passes(value, modulus, rest), store(step));
      }
      return not
          ? table.filterNot((key, value) -> Functions.passes(value, modulus, rest))
          : table.filter((key, value) -> Functions.passes(value, modulus, rest));
    }
    KStream<Object, Object> stream = stream(step, "of");
    if (op.equals("map_values")) {
      return stream.mapValues(suffixing(step));
    }
    if (step.has("keyed")) {
      return stream.filter((key, value) -> key != null);
    }
    int modulus = step.get("modulus").asInt();
    int rest = step.get("rest").asInt();
    return op.equals("filter_not")
        ? stream.filterNot((key, value) -> Functions.passes(value, modulus, rest))
        : stream.filter((key, value) -> Functions.passes(value, modulus, rest));
  }

  // --- tables -----------------------------------------------------------------------------------------------------

  private Object ofTable(JsonNode step) {
    KTable<Object, Object> table = table(step, "of");
    switch (step.get("op").asText()) {
      case "to_stream":
        return step.has("shift") ? table.toStream(keyOrNone(step)) : table.toStream();
      case "suppress", "suppress_windows":
        return Buffers.suppressed(table, step);
      case "transform_values":
        String suffix = step.get("suffix").asText();
        if (step.hasNonNull("uses")) {
          String uses = withStore(step.get("uses").asText());
          return table.transformValues(() -> new Suffixing(suffix, uses), store(step), uses);
        }
        return step.hasNonNull("store")
            ? table.transformValues(() -> new Suffixing(suffix), store(step))
            : table.transformValues(() -> new Suffixing(suffix));
      case "group_by":
        int shift = step.path("shift").asInt();
        return aggregated(
            step.has("of_window")
                ? table.groupBy((key, value) -> KeyValue.pair(((Windowed<?>) key).key(), value))
                : table.groupBy((key, value) -> KeyValue.pair(Functions.key(value, shift), value)),
            step);
      case "table_join":
        KTable<Object, Object> other = table(step, "with");
        boolean kept = step.hasNonNull("store");
        return switch (step.get("how").asText()) {
          case "inner" -> kept ? table.join(other, joiner(step), store(step)) : table.join(other, joiner(step));
          case "left" ->
              kept ? table.leftJoin(other, joiner(step), store(step)) : table.leftJoin(other, joiner(step));
          default ->
              kept ? table.outerJoin(other, joiner(step), store(step)) : table.outerJoin(other, joiner(step));
        };
      default:
        KTable<Object, Object> right = table(step, "with");
        Function<Object, Object> foreignKey = foreignKey(step);
        boolean stored = step.hasNonNull("store");
        if (step.has("partitioned")) {
          TableJoined<Object, Object> joined = partitioned(step.get("partitioned").asBoolean());
          if (step.get("how").asText().equals("inner")) {
            return stored
                ? table.join(right, foreignKey, joiner(step), joined, store(step))
                : table.join(right, foreignKey, joiner(step), joined);
          }
          return stored
              ? table.leftJoin(right, foreignKey, joiner(step), joined, store(step))
              : table.leftJoin(right, foreignKey, joiner(step), joined);
        }
        if (step.get("how").asText().equals("inner")) {
          return stored
              ? table.join(right, foreignKey, joiner(step), store(step))
              : table.join(right, foreignKey, joiner(step));
        }
        return stored
            ? table.leftJoin(right, foreignKey, joiner(step), store(step))
            : table.leftJoin(right, foreignKey, joiner(step));
    }
  }

  private static TableJoined<Object, Object> partitioned(boolean both) {
    StreamPartitioner<Object, Void> byKey =
        (topic, key, value, count) -> Optional.of(Set.of(Functions.sum(key) % count));
    return both ? TableJoined.with(byKey, byKey) : TableJoined.with(null, byKey);
  }

  private static Function<Object, Object> foreignKey(JsonNode step) {
    int shift = step.get("shift").asInt();
    if (!step.has("window")) {
      return value -> Functions.key(value, shift);
    }
    long advance = step.get("window").get("advance").asLong();
    long size = step.get("window").get("size").asLong();
    return value -> {
      long start = Functions.start(value, advance);
      return new Windowed<>(Functions.key(value, shift), new TimeWindow(start, start + size));
    };
  }

  private Object aggregated(KGroupedTable<Object, Object> grouped, JsonNode step) {
    boolean kept = step.hasNonNull("store");
    return switch (step.get("function").asText()) {
      case "count" -> kept ? grouped.count(longs(step)) : grouped.count();
      case "reduce" ->
          kept
              ? grouped.reduce(adder(step), taker(step), store(step))
              : grouped.reduce(adder(step), taker(step));
      default ->
          kept
              ? grouped.aggregate(
                  () -> (Object) "0",
                  adding(step),
                  taking(step),
                  store(step))
              : grouped.aggregate(
                  () -> (Object) "0",
                  adding(step),
                  taking(step));
    };
  }

  // --- streams ----------------------------------------------------------------------------------------------------

  private Object ofStream(JsonNode step) {
    if (step.get("op").asText().equals("branch")) {
      return split(step.get("of").asInt()).get("split" + step.get("of").asInt() + "-" + step.get("branch").asInt());
    }
    KStream<Object, Object> stream = stream(step, "of");
    return switch (step.get("op").asText()) {
      case "flat_map_values" -> {
        int most = step.get("most").asInt();
        yield stream.flatMapValues(value -> Functions.pieces(value, most));
      }
      case "flat_map" -> {
        int most = step.get("most").asInt();
        yield stream.flatMap(
            (key, value) -> {
              List<KeyValue<Object, Object>> pieces = new ArrayList<>();
              Functions.pieces(value, most)
                  .forEach(piece -> pieces.add(KeyValue.pair((Object) Functions.key(piece, 0), piece)));
              return pieces;
            });
      }
      case "select_key" -> {
        if (step.has("of_window")) {
          yield stream.selectKey((key, value) -> ((Windowed<?>) key).key());
        }
        yield stream.selectKey(keyOrNone(step));
      }
      case "map" -> {
        KeyValueMapper<Object, Object, Object> key = keyOrNone(step);
        ValueMapperWithKey<Object, Object, Object> value = suffixing(step);
        yield stream.map((of, old) -> KeyValue.pair(key.apply(of, old), value.apply(of, old)));
      }
      case "peek" -> stream.peek(observing());
      case "foreach" -> {
        stream.foreach(observing());
        yield null;
      }
      case "process_values" ->
          stream.processValues(() -> new TellingOfValues(step), Named.as(step.get("name").asText()), used(step));
      case "merge" -> stream.merge(stream(step, "with"));
      case "repartition" -> stream.repartition();
      case "to_table" -> step.hasNonNull("store") ? stream.toTable(store(step)) : stream.toTable();
      case "split" -> splitting(stream, step);
      case "process" -> processed(stream, step);
      case "named" -> stream.mapValues(suffixing(step), Named.as(step.get("name").asText()));
      case "aggregate" -> aggregated(grouped(step), step);
      case "stream_join" -> streamJoin(stream, step);
      case "stream_table_join" -> {
        Joined<Object, Object, Object> joined = Joined.with(null, null, null);
        if (step.has("grace")) {
          joined = joined.withGracePeriod(Duration.ofMillis(step.get("grace").asLong()));
        }
        yield step.get("how").asText().equals("inner")
            ? stream.join(table(step, "with"), joiner(step), joined)
            : stream.leftJoin(table(step, "with"), joiner(step), joined);
      }
      case "global_join" -> globalJoin(stream, step);
      default -> throw new IllegalArgumentException("no such step: " + step);
    };
  }

  @SuppressWarnings("unchecked")
  private Object globalJoin(KStream<Object, Object> stream, JsonNode step) {
    var table = (GlobalKTable<Object, Object>) made.get(step.get("with").asInt());
    int shift = step.path("shift").asInt();
    int none = step.path("none").asInt();
    KeyValueMapper<Object, Object, Object> mapper =
        step.has("of_key")
            ? (key, value) -> key instanceof Windowed<?> windowed ? windowed.key() : key
            : (key, value) -> Functions.keyOrNone(value, shift, none);
    return step.get("how").asText().equals("inner")
        ? stream.join(table, mapper, joiner(step))
        : stream.leftJoin(table, mapper, joiner(step));
  }

  private Object processed(KStream<Object, Object> stream, JsonNode step) {
    return stream.process(() -> new Telling(step), Named.as(step.get("name").asText()), used(step));
  }

  /** Adds the stores that a processor uses; their names. */
  private String[] used(JsonNode step) {
    List<String> used = new ArrayList<>();
    if (step.hasNonNull("uses")) {
      used.add(withStore(step.get("uses").asText()));
    }
    if (step.hasNonNull("table")) {
      used.add(step.get("table").asText());
    }
    if (step.hasNonNull("lists")) {
      builder.addStateStore(Kept.lists(step.get("lists").asText()));
      used.add(step.get("lists").asText());
    }
    if (step.has("own")) {
      builder.addStateStore(OwnStores.builder(step.get("own")));
      used.add(step.get("own").get("name").asText());
    }
    if (step.hasNonNull("global")) {
      String global = step.get("global").asText();
      builder.addGlobalStore(
          Kept.texts(global).withLoggingDisabled(),
          "topic-" + global,
          Consumed.with(new KeySerde(), new ValueSerde()),
          () -> new Filling(global));
    }
    return used.toArray(new String[0]);
  }

  /** Adds a store for processors, if it is not there. */
  private String withStore(String name) {
    if (stores.add(name)) {
      builder.addStateStore(Kept.texts(name));
    }
    return name;
  }

  private Object splitting(KStream<Object, Object> stream, JsonNode step) {
    var split = stream.split(Named.as("split" + made.size() + "-"));
    int number = 0;
    int modulus = step.get("modulus").asInt();
    for (JsonNode rest : step.get("rests")) {
      int wanted = rest.asInt();
      split.branch((key, value) -> Functions.passes(value, modulus, wanted), Branched.as("" + number++));
    }
    return step.get("default").asBoolean()
        ? split.defaultBranch(Branched.as("" + number))
        : split.noDefaultBranch();
  }

  private Object streamJoin(KStream<Object, Object> stream, JsonNode step) {
    JoinWindows windows = joinWindows(step);
    KStream<Object, Object> other = stream(step, "with");
    StreamJoined<Object, Object, Object> joined = StreamJoined.with(new KeySerde(), new ValueSerde(), new ValueSerde());
    if (step.has("stores")) {
      Duration size = Duration.ofMillis(windows.beforeMs + windows.afterMs);
      Duration kept = size.plusMillis(windows.gracePeriodMs());
      joined =
          joined
              .withThisStoreSupplier(Stores.persistentWindowStore(step.get("stores").get(0).asText(), kept, size, true))
              .withOtherStoreSupplier(
                  Stores.persistentWindowStore(step.get("stores").get(1).asText(), kept, size, true));
    }
    return switch (step.get("how").asText()) {
      case "inner" -> stream.join(other, joiner(step), windows, joined);
      case "left" -> stream.leftJoin(other, joiner(step), windows, joined);
      default -> stream.outerJoin(other, joiner(step), windows, joined);
    };
  }

  @SuppressWarnings("deprecation")
  private static JoinWindows joinWindows(JsonNode step) {
    Duration before = Duration.ofMillis(step.get("before").asLong());
    Duration after = Duration.ofMillis(step.get("after").asLong());
    Duration grace = Duration.ofMillis(step.get("grace").asLong());
    Duration longer = before.compareTo(after) > 0 ? before : after;
    JoinWindows windows =
        step.path("at_once").asBoolean()
            ? JoinWindows.of(longer).grace(grace)
            : JoinWindows.ofTimeDifferenceAndGrace(longer, grace);
    return windows.before(before).after(after);
  }

  private KGroupedStream<Object, Object> grouped(JsonNode step) {
    KStream<Object, Object> stream = stream(step, "of");
    int shift = step.path("by").asInt();
    return step.has("by") ? stream.groupBy((key, value) -> Functions.key(value, shift)) : stream.groupByKey();
  }

  private Object aggregated(KGroupedStream<Object, Object> grouped, JsonNode step) {
    boolean kept = step.hasNonNull("store");
    return switch (step.get("function").asText()) {
      case "count" -> kept ? grouped.count(longs(step)) : grouped.count();
      case "reduce" ->
          kept ? grouped.reduce(adder(step), store(step)) : grouped.reduce(adder(step));
      default ->
          kept
              ? grouped.aggregate(
                  () -> (Object) "0", adding(step), store(step))
              : grouped.aggregate(
                  () -> (Object) "0", adding(step));
    };
  }

  // ----------------------------------------------------------------------------------------------------------------

  private Object sink(JsonNode step) {
    String topic = step.get("topic").asText();
    sinks.add(topic);
    stream(step, "of").to(topic, Produced.with(new KeySerde(), new ValueSerde()));
    return null;
  }

  private Object sinkOfEach(JsonNode step) {
    List<String> topics = topics(step);
    sinks.addAll(topics);
    stream(step, "of")
        .to(
            (key, value, context) -> topics.get(Functions.number(value, topics.size())),
            Produced.with(new KeySerde(), new ValueSerde()));
    return null;
  }

  private static List<String> topics(JsonNode step) {
    List<String> topics = new ArrayList<>(List.of(step.get("topic").asText()));
    step.path("more").forEach(topic -> topics.add(topic.asText()));
    return topics;
  }

  private static Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store(JsonNode step) {
    return TopologyOfProgram.<Object>kept(step).withKeySerde(new KeySerde()).withValueSerde(new ValueSerde());
  }

  private static Materialized<Object, Long, KeyValueStore<Bytes, byte[]>> longs(JsonNode step) {
    return kept(step);
  }

  private static <V> Materialized<Object, V, KeyValueStore<Bytes, byte[]>> kept(JsonNode step) {
    String store = step.get("store").asText();
    return step.hasNonNull("retention")
        ? Materialized.as(
            Stores.persistentVersionedKeyValueStore(store, Duration.ofMillis(step.get("retention").asLong())))
        : Materialized.as(store);
  }

  private static KeyValueMapper<Object, Object, Object> keyOrNone(JsonNode step) {
    int shift = step.get("shift").asInt();
    int none = step.path("none").asInt(-1);
    return (key, value) -> Functions.keyOrNone(value, shift, none);
  }

  private static ValueJoiner<Object, Object, Object> joiner(JsonNode step) {
    return (left, right) -> Functions.checked(step, Functions.joined(left, right));
  }

  static Reducer<Object> adder(JsonNode step) {
    return (aggregate, value) -> Functions.checked(step, Functions.added(aggregate, value));
  }

  private static Reducer<Object> taker(JsonNode step) {
    return (aggregate, value) -> Functions.checked(step, Functions.taken(aggregate, value));
  }

  static Aggregator<Object, Object, Object> adding(JsonNode step) {
    return (key, value, aggregate) -> Functions.checked(step, Functions.added(aggregate, value));
  }

  static Aggregator<Object, Object, Object> taking(JsonNode step) {
    return (key, value, aggregate) -> Functions.checked(step, Functions.taken(aggregate, value));
  }

  private static ValueMapperWithKey<Object, Object, Object> suffixing(JsonNode step) {
    String suffix = step.get("suffix").asText();
    return (key, value) -> {
      if (step.has("fails")) {
        Functions.failForSome(value);
      }
      return Functions.suffixed(value, (step.has("with_key") ? Functions.keyText(key) : "") + suffix);
    };
  }

  @SuppressWarnings("unchecked")
  private KStream<Object, Object> stream(JsonNode step, String which) {
    return (KStream<Object, Object>) made.get(step.get(which).asInt());
  }

  @SuppressWarnings("unchecked")
  private KTable<Object, Object> table(JsonNode step, String which) {
    return (KTable<Object, Object>) made.get(step.get(which).asInt());
  }

  @SuppressWarnings("unchecked")
  private Map<String, KStream<Object, Object>> split(int number) {
    return (Map<String, KStream<Object, Object>>) made.get(number);
  }
}
