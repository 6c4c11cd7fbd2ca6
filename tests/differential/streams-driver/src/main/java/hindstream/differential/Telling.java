package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** Forwards each record several times: to one child, to another, or (null) to all, in the order that a step says. One more when called. */
final class Telling implements Processor<Object, Object, Object, Object> {
  private final JsonNode step;
  private ProcessorContext<Object, Object> context;

  Telling(JsonNode step) {
    this.step = step;
  }

  @Override
  public void init(ProcessorContext<Object, Object> given) {
    context = given;
    if (step.has("tick")) {
      context.schedule(
          Duration.ofMillis(step.get("tick").asLong()),
          PunctuationType.STREAM_TIME,
          timestamp -> context.forward(new Record<>("a", "t" + timestamp, timestamp)));
    }
  }

  @Override
  public void process(Record<Object, Object> record) {
    int number = 0;
    for (JsonNode child : step.get("forwards")) {
      Record<Object, Object> forwarded =
          record.withValue(Functions.suffixed(record.value(), "p" + number++));
      if (child.isNull()) {
        context.forward(forwarded);
      } else {
        context.forward(forwarded, child.asText());
      }
    }
  }
}
