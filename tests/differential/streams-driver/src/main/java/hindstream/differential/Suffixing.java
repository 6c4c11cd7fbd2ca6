package hindstream.differential;

import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;

/** Gives every value another, and null one, too. */
final class Suffixing implements ValueTransformerWithKey<Object, Object, Object> {
  private final String suffix;

  Suffixing(String suffix) {
    this.suffix = suffix;
  }

  @Override
  public void init(ProcessorContext context) {}

  @Override
  public Object transform(Object key, Object value) {
    return Functions.cut(Functions.text(value) + suffix);
  }

  @Override
  public void close() {}
}
