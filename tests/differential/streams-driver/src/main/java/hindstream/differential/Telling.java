package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Forwards each record several times: to one child, to another, or (null) to all, in the order that a step says. One more
 * when called.
 */
final class Telling implements Processor<Object, Object, Object, Object> {
  private final JsonNode step;
  private ProcessorContext<Object, Object> context;
  private Kept kept;

  Telling(JsonNode step) {
    this.step = step;
  }

  @Override
  public void init(ProcessorContext<Object, Object> given) {
    context = given;
    kept = new Kept(step, context::getStateStore);
    if (step.has("tick")) {
      Duration interval = Duration.ofMillis(step.get("tick").asLong());
      PunctuationType clock =
          step.path("by_wall_clock").asBoolean() ? PunctuationType.WALL_CLOCK_TIME : PunctuationType.STREAM_TIME;
      if (step.has("start")) {
        context.schedule(Instant.ofEpochMilli(step.get("start").asLong()), interval, clock, this::tick);
      } else {
        context.schedule(interval, clock, this::tick);
      }
    }
  }

  private void tick(long timestamp) {
    tell(Functions.keys().all.get(0), "t" + timestamp, timestamp);
    if (step.has("fails")) {
      Functions.failForSome("t" + timestamp);
      tell(Functions.keys().all.get(1), "u" + timestamp, timestamp);
    }
  }

  private void tell(Object key, String value, long timestamp) {
    context.forward(new Record<>(key, kept.told(key, value, timestamp), timestamp));
  }

  @Override
  public void process(Record<Object, Object> record) {
    int number = 0;
    for (JsonNode child : step.get("forwards")) {
      if (number > 0 && step.has("fails")) {
        Functions.failForSome(record.value());
      }
      Object suffixed = Functions.suffixed(record.value(), "p" + number++);
      Record<Object, Object> forwarded = record.withValue(kept.told(record.key(), suffixed, record.timestamp()));
      if (child.isNull()) {
        context.forward(forwarded);
      } else {
        context.forward(forwarded, child.asText());
      }
    }
  }
}
