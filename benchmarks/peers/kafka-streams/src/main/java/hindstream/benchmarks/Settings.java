package hindstream.benchmarks;

import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;

/** How the application is set up. */
final class Settings {
  private static final long CACHE_BYTES = 256L << 20;

  private Settings() {}

  static Properties common(Path state) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "benchmark");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:9092");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
    settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, CACHE_BYTES);
    settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, PointLookups.class);
    return settings;
  }

  static Properties application(Path state, String bootstrapServers) {
    Properties settings = common(state);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "2");
    settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, "10000");
    settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, "8388608");
    settings.put(ProducerConfig.BATCH_SIZE_CONFIG, "262144");
    settings.put(ProducerConfig.LINGER_MS_CONFIG, "100");
    return settings;
  }
}
