package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** Streams of a program that are aggregated together. */
final class CogroupSteps {
  private static final Duration MS = Duration.ofMillis(10);

  private CogroupSteps() {}

  /** The table of two streams, or of one; with windows or not. */
  static KTable<?, ?> aggregated(
      KGroupedStream<Object, Object> one, KGroupedStream<Object, Object> other, JsonNode step) {
    boolean counts = step.get("function").asText().equals("counts");
    CogroupedKStream<Object, Object> both =
        counts
            ? one.cogroup((key, value, aggregate) -> Functions.counted(aggregate, 0))
            : one.cogroup(TopologyOfProgram.adding(step));
    if (other != null) {
      Aggregator<Object, Object, Object> second =
          counts
              ? (key, value, aggregate) -> Functions.counted(aggregate, 1)
              : TopologyOfProgram.taking(step);
      both = both.cogroup(other, second);
    }
    Object zero = !counts ? "0" : other == null ? "0" : "0:0";
    Initializer<Object> initializer = () -> zero;
    boolean kept = step.hasNonNull("store");
    if (!step.has("windows")) {
      return kept
          ? both.aggregate(initializer, CogroupSteps.<KeyValueStore<Bytes, byte[]>>store(step))
          : both.aggregate(initializer);
    }
    JsonNode windows = step.get("windows");
    if (windows.get("kind").asText().equals("unlimited")) {
      var endless = both.windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(windows.get("start").asLong())));
      return kept
          ? endless.aggregate(initializer, CogroupSteps.<WindowStore<Bytes, byte[]>>store(step))
          : endless.aggregate(initializer);
    }
    Duration grace = Duration.ofMillis(windows.get("grace").asLong());
    if (windows.get("kind").asText().equals("sessions")) {
      Merger<Object, Object> merger =
          (key, first, second) ->
              counts ? Functions.counted(first, second) : Functions.checked(step, Functions.merged(first, second));
      SessionWindowedCogroupedKStream<Object, Object> sessions =
          both.windowedBy(SessionWindows.ofInactivityGapAndGrace(duration(windows, "gap"), grace));
      return kept
          ? sessions.aggregate(initializer, merger, CogroupSteps.<SessionStore<Bytes, byte[]>>store(step))
          : sessions.aggregate(initializer, merger);
    }
    TimeWindowedCogroupedKStream<Object, Object> windowed =
        windows.get("kind").asText().equals("time")
            ? both.windowedBy(
                TimeWindows.ofSizeAndGrace(duration(windows, "size"), grace).advanceBy(duration(windows, "advance")))
            : both.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(duration(windows, "difference"), grace));
    return kept
        ? windowed.aggregate(initializer, CogroupSteps.<WindowStore<Bytes, byte[]>>store(step))
        : windowed.aggregate(initializer);
  }

  private static <S extends StateStore> Materialized<Object, Object, S> store(JsonNode step) {
    return Materialized.as(step.get("store").asText());
  }

  private static Duration duration(JsonNode windows, String which) {
    return Duration.ofMillis(windows.get(which).asLong());
  }

  /** The same in a program of names; more than once if the step says so. */
  static KTable<?, ?> named(KGroupedStream<Object, Object> one, KGroupedStream<Object, Object> other, JsonNode step) {
    CogroupedKStream<Object, Object> both = one.cogroup((key, value, aggregate) -> aggregate);
    if (other != null) {
      both.cogroup(other, (key, value, aggregate) -> aggregate); // which changes the object itself
    }
    Named named = step.hasNonNull("name") ? Named.as(step.get("name").asText()) : null;
    if (step.path("again").asBoolean()) {
      named(both, step, null, false);
    }
    return named(both, step, named, step.hasNonNull("store"));
  }

  private static KTable<?, ?> named(
      CogroupedKStream<Object, Object> both, JsonNode step, Named named, boolean kept) {
    Initializer<Object> initializer = () -> 0;
    switch (step.path("windows").asText()) {
      case "":
        if (kept) {
          Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = storeOrNothing(step);
          return named == null ? both.aggregate(initializer, store) : both.aggregate(initializer, named, store);
        }
        return named == null ? both.aggregate(initializer) : both.aggregate(initializer, named);
      case "sessions":
        SessionWindowedCogroupedKStream<Object, Object> sessions =
            both.windowedBy(SessionWindows.ofInactivityGapAndGrace(MS, MS));
        Merger<Object, Object> merger = (key, first, second) -> first;
        if (kept) {
          Materialized<Object, Object, SessionStore<Bytes, byte[]>> store = storeOrNothing(step);
          return named == null
              ? sessions.aggregate(initializer, merger, store)
              : sessions.aggregate(initializer, merger, named, store);
        }
        return named == null
            ? sessions.aggregate(initializer, merger)
            : sessions.aggregate(initializer, merger, named);
      default:
        TimeWindowedCogroupedKStream<Object, Object> windowed =
            switch (step.get("windows").asText()) {
              case "tumbling" -> both.windowedBy(TimeWindows.ofSizeAndGrace(MS, MS));
              case "unlimited" -> both.windowedBy(UnlimitedWindows.of());
              default -> both.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(MS, MS));
            };
        if (kept) {
          Materialized<Object, Object, WindowStore<Bytes, byte[]>> store = storeOrNothing(step);
          return named == null
              ? windowed.aggregate(initializer, store)
              : windowed.aggregate(initializer, named, store);
        }
        return named == null ? windowed.aggregate(initializer) : windowed.aggregate(initializer, named);
    }
  }

  /** "" stands for a Materialized without a name. */
  private static <S extends StateStore> Materialized<Object, Object, S> storeOrNothing(JsonNode step) {
    String name = step.get("store").asText();
    return name.isEmpty() ? Materialized.with(null, null) : Materialized.as(name);
  }
}
