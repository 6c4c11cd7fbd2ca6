package hindstream.differential;

import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/** Puts each record into a store. */
final class Filling implements Processor<Object, Object, Void, Void> {
  private final String name;
  private KeyValueStore<String, String> store;

  Filling(String name) {
    this.name = name;
  }

  @Override
  public void init(ProcessorContext<Void, Void> context) {
    store = context.getStateStore(name);
  }

  @Override
  public void process(Record<Object, Object> record) {
    if (record.key() != null) {
      store.put(Functions.text(record.key()), (String) record.value());
    }
  }
}
