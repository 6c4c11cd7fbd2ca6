package hindstream.differential;

import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;

/** Gives every value another, and null one, too. */
final class Suffixing implements ValueTransformerWithKey<Object, Object, Object> {
  private final String suffix;
  private final String uses;
  private KeyValueStore<String, String> store;

  Suffixing(String suffix) {
    this(suffix, null);
  }

  /** Tells what it has made last for the key, which it keeps in a store. */
  Suffixing(String suffix, String uses) {
    this.suffix = suffix;
    this.uses = uses;
  }

  @Override
  public void init(ProcessorContext context) {
    if (uses != null) {
      store = context.getStateStore(uses);
    }
  }

  @Override
  public Object transform(Object key, Object value) {
    String made = Functions.cut(Functions.text(value) + suffix);
    if (store != null) {
      String name = Functions.keyText(key);
      made = Functions.joined(store.get(name), made);
      store.put(name, made);
    }
    return made;
  }

  @Override
  public void close() {}
}
