package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed.EagerBufferConfig;
import org.apache.kafka.streams.kstream.Suppressed.StrictBufferConfig;

/** Suppressed tables of a program. */
final class Buffers {
  private Buffers() {}

  /** The table, as the step holds it back. */
  @SuppressWarnings({"rawtypes", "unchecked"})
  static KTable<Object, Object> suppressed(KTable table, JsonNode step) {
    if (step.get("op").asText().equals("suppress_windows")) {
      return table.suppress(Suppressed.untilWindowCloses(strict(step)));
    }
    Duration limit = Duration.ofMillis(step.get("limit").asLong());
    boolean early = step.path("full").asText("early").equals("early") && (step.has("most") || step.has("bytes"));
    return early
        ? table.suppress(Suppressed.untilTimeLimit(limit, bounded(step).emitEarlyWhenFull()))
        : table.suppress(Suppressed.untilTimeLimit(limit, strict(step)));
  }

  private static StrictBufferConfig strict(JsonNode step) {
    return switch (step.path("full").asText()) {
      case "strict" -> bounded(step).shutDownWhenFull();
      case "no bound" -> bounded(step).withNoBound();
      default -> BufferConfig.unbounded();
    };
  }

  private static EagerBufferConfig bounded(JsonNode step) {
    if (!step.has("most")) {
      return BufferConfig.maxBytes(step.get("bytes").asLong());
    }
    EagerBufferConfig records = BufferConfig.maxRecords(step.get("most").asLong());
    return step.has("bytes") ? records.withMaxBytes(step.get("bytes").asLong()) : records;
  }
}
