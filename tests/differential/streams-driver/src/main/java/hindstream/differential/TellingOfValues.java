package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;

/** As {@link Telling}, under the keys of the records, and never called otherwise. */
final class TellingOfValues implements FixedKeyProcessor<Object, Object, Object> {
  private final JsonNode step;
  private FixedKeyProcessorContext<Object, Object> context;
  private Kept kept;

  TellingOfValues(JsonNode step) {
    this.step = step;
  }

  @Override
  public void init(FixedKeyProcessorContext<Object, Object> given) {
    context = given;
    kept = new Kept(step, context::getStateStore);
  }

  @Override
  public void process(FixedKeyRecord<Object, Object> record) {
    int number = 0;
    for (JsonNode child : step.get("forwards")) {
      if (number > 0 && step.has("fails")) {
        Functions.failForSome(record.value());
      }
      Object suffixed = Functions.suffixed(record.value(), "p" + number++);
      FixedKeyRecord<Object, Object> forwarded =
          record.withValue(kept.told(record.key(), suffixed, record.timestamp()));
      if (child.isNull()) {
        context.forward(forwarded);
      } else {
        context.forward(forwarded, child.asText());
      }
    }
  }
}
