package hindstream.benchmarks;

import java.nio.file.Path;
import java.util.Properties;
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
    return settings;
  }
}
