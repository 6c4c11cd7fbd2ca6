package hindstream.benchmarks;

import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;

/** How an application is set up for a replay: what is not set here is best as it comes. */
final class Settings {
  private static final int THREADS = 2;
  private static final long CACHE_BYTES = 256L << 20; // holds the windows that change between two commits
  private static final int POLL_RECORDS = 10_000;
  private static final int FETCH_BYTES = 8 << 20;
  private static final int BATCH_BYTES = 1 << 18;

  private Settings() {}

  /** Of the engine, with or without a broker. */
  static Properties common(Path state) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "benchmark");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
    settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, CACHE_BYTES);
    settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, PointLookups.class);
    return settings;
  }

  /**
   * With a broker. A task takes up clicks and rates by time only if it waits for whichever lies in the broker and is
   * not fetched yet: {@code max.task.idle.ms} must not be -1.
   */
  static Properties application(Path state, String bootstrapServers) {
    Properties settings = common(state);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
    settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 0L);
    settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, POLL_RECORDS);
    settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, FETCH_BYTES);
    settings.put(ProducerConfig.BATCH_SIZE_CONFIG, BATCH_BYTES);
    return settings;
  }
}
