package hindstream.benchmarks;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntToLongFunction;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * Puts into and reads from Kafka Streams' own versioned store, as a processor sees it, without a changelog. Prints, as
 * JSON, the CPU seconds of the process and the digest of the answers of each kind of operation.
 */
final class Versioned implements Processor<String, Long, Void, Void> {
  private static final String STORE = "store";

  private final AtomicReference<VersionedKeyValueStore<String, Long>> opened;

  private Versioned(AtomicReference<VersionedKeyValueStore<String, Long>> opened) {
    this.opened = opened;
  }

  /** Arguments: the file of the operations, a folder, the history retention and the segment interval in ms. */
  public static void main(String[] arguments) throws Exception {
    VersionedOperations asked = VersionedOperations.read(Path.of(arguments[0]));
    String[] keys = asked.keys();
    int puts = asked.putKey().length;
    int reads = asked.readKey().length;
    Duration retention = Duration.ofMillis(Long.parseLong(arguments[2]));
    Duration segment = Duration.ofMillis(Long.parseLong(arguments[3]));
    String figures = "";
    for (int limit : new int[] {VersionedOperations.WARM_UP, Integer.MAX_VALUE}) {
      AtomicReference<VersionedKeyValueStore<String, Long>> opened = new AtomicReference<>();
      Properties settings = Settings.common(Path.of(arguments[1], "kafka-" + limit));
      settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
      try (TopologyTestDriver driver = new TopologyTestDriver(topology(opened, retention, segment), settings)) {
        VersionedKeyValueStore<String, Long> store = opened.get();
        figures =
            "{\"put\": %s, \"get\": %s, \"get as of\": %s}"
                .formatted(
                    timed(Math.min(puts, limit), i -> store.put(keys[asked.putKey()[i]], asked.putValue()[i], asked.putTime()[i])),
                    timedReads(Math.min(reads, limit), i -> store.get(keys[asked.readKey()[i]])),
                    timedReads(Math.min(reads, limit), i -> store.get(keys[asked.readKey()[i]], asked.readTime()[i])));
      }
    }
    System.out.println(figures);
  }

  private static Topology topology(
      AtomicReference<VersionedKeyValueStore<String, Long>> opened, Duration retention, Duration segment) {
    StoreBuilder<?> builder =
        Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore(STORE, retention, segment), Serdes.String(), Serdes.Long())
            .withLoggingDisabled();
    ProcessorSupplier<String, Long, Void, Void> supplier =
        new ProcessorSupplier<>() {
          @Override
          public Processor<String, Long, Void, Void> get() {
            return new Versioned(opened);
          }

          @Override
          public Set<StoreBuilder<?>> stores() {
            return Set.of(builder);
          }
        };
    return new Topology()
        .addSource("source", Serdes.String().deserializer(), Serdes.Long().deserializer(), "topic")
        .addProcessor("processor", supplier, "source");
  }

  @Override
  public void init(ProcessorContext<Void, Void> context) {
    opened.set(context.getStateStore(STORE));
  }

  @Override
  public void process(Record<String, Long> record) {
    throw new IllegalStateException("the store is called from outside");
  }

  @FunctionalInterface
  private interface Read {
    VersionedRecord<Long> of(int row);
  }

  private static String timedReads(int count, Read read) {
    long began = cpuNanos();
    long digest = 0;
    for (int i = 0; i < count; i++) {
      VersionedRecord<Long> found = read.of(i);
      digest = found == null ? digest * 31 + VersionedOperations.NOTHING : (digest * 31 + found.value()) * 31 + found.timestamp();
    }
    return figure(began, digest);
  }

  private static String timed(int count, IntToLongFunction operation) {
    long began = cpuNanos();
    long digest = 0;
    for (int i = 0; i < count; i++) {
      digest = digest * 31 + operation.applyAsLong(i);
    }
    return figure(began, digest);
  }

  private static String figure(long began, long digest) {
    return figure((cpuNanos() - began) / 1e9, digest);
  }

  static String figure(double seconds, long digest) {
    return "{\"cpu_seconds\": %s, \"digest\": %s}".formatted(seconds, Long.toUnsignedString(digest));
  }

  static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}
