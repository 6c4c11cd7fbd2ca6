package hindstream.testbed;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** How many records the stores have been restored from. */
final class Restored implements StateRestoreListener {
  private final Map<String, Long> records = new TreeMap<>();

  /** A row for each store. */
  synchronized void dump(Consumer<Map<String, Object>> rows) {
    records.forEach((store, restored) -> rows.accept(Map.of("store", store, "records", restored)));
  }

  @Override
  public synchronized void onRestoreStart(TopicPartition changelog, String store, long from, long to) {
    records.merge(store, 0L, Long::sum);
  }

  @Override
  public synchronized void onBatchRestored(TopicPartition changelog, String store, long last, long restored) {
    records.merge(store, restored, Long::sum);
  }

  @Override
  public void onRestoreEnd(TopicPartition changelog, String store, long total) {}
}
