package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** Windowed aggregations of a program. */
final class WindowedSteps {
  private WindowedSteps() {}

  /** A table with windowed keys. */
  static KTable<?, ?> aggregated(KGroupedStream<Object, Object> grouped, JsonNode step) {
    JsonNode windows = step.get("windows");
    if (windows.get("kind").asText().equals("unlimited")) {
      Instant start = Instant.ofEpochMilli(windows.get("start").asLong());
      return ofTime(grouped.windowedBy(UnlimitedWindows.of().startOn(start)), step);
    }
    Duration grace = duration(windows, "grace");
    return switch (windows.get("kind").asText()) {
      case "time" ->
          ofTime(
              grouped.windowedBy(
                  TimeWindows.ofSizeAndGrace(duration(windows, "size"), grace).advanceBy(duration(windows, "advance"))),
              step);
      case "sessions" ->
          ofSessions(
              grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(duration(windows, "gap"), grace)), step);
      default ->
          ofTime(
              grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(duration(windows, "difference"), grace)),
              step);
    };
  }

  private static KTable<?, ?> ofTime(TimeWindowedKStream<Object, Object> windowed, JsonNode step) {
    if (!step.get("windows").get("kind").asText().equals("unlimited")) { // which have no strategy
      windowed = windowed.emitStrategy(strategy(step));
    }
    boolean kept = step.hasNonNull("store");
    return switch (step.get("function").asText()) {
      case "count" ->
          kept
              ? windowed.count(kept(Materialized.<Object, Long, WindowStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.count();
      case "reduce" ->
          kept
              ? windowed.reduce(
                  TopologyOfProgram.adder(step),
                  kept(Materialized.<Object, Object, WindowStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.reduce(TopologyOfProgram.adder(step));
      default ->
          kept
              ? windowed.aggregate(
                  () -> (Object) "0",
                  TopologyOfProgram.adding(step),
                  kept(Materialized.<Object, Object, WindowStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.aggregate(
                  () -> (Object) "0", TopologyOfProgram.adding(step));
    };
  }

  private static KTable<?, ?> ofSessions(SessionWindowedKStream<Object, Object> windowed, JsonNode step) {
    windowed = windowed.emitStrategy(strategy(step));
    boolean kept = step.hasNonNull("store");
    return switch (step.get("function").asText()) {
      case "count" ->
          kept
              ? windowed.count(kept(Materialized.<Object, Long, SessionStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.count();
      case "reduce" ->
          kept
              ? windowed.reduce(
                  TopologyOfProgram.adder(step),
                  kept(Materialized.<Object, Object, SessionStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.reduce(TopologyOfProgram.adder(step));
      default ->
          kept
              ? windowed.aggregate(
                  () -> (Object) "0",
                  TopologyOfProgram.adding(step),
                  (key, one, other) -> Functions.checked(step, Functions.merged(one, other)),
                  kept(Materialized.<Object, Object, SessionStore<Bytes, byte[]>>as(step.get("store").asText()), step))
              : windowed.aggregate(
                  () -> (Object) "0",
                  TopologyOfProgram.adding(step),
                  (key, one, other) -> Functions.checked(step, Functions.merged(one, other)));
    };
  }

  private static EmitStrategy strategy(JsonNode step) {
    return step.path("final").asBoolean() ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
  }

  /** With the retention that the step asks for, if any. */
  private static <V, S extends StateStore> Materialized<Object, V, S> kept(
      Materialized<Object, V, S> materialized, JsonNode step) {
    return step.has("kept") ? materialized.withRetention(duration(step, "kept")) : materialized;
  }

  private static Duration duration(JsonNode windows, String which) {
    return Duration.ofMillis(windows.get(which).asLong());
  }
}
