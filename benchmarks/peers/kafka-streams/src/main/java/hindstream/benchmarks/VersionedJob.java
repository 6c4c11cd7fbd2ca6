package hindstream.benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CommitIntervalDriver;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * A topic put into a versioned table, then a stream joined with it, each record as of its own time: in Kafka Streams'
 * engine without a broker, with a changelog as it comes. Prints, as JSON, the CPU seconds of the process for each of
 * both topics and the digest of what the join has found.
 */
final class VersionedJob {
  private static final String UPDATES = "updates";
  private static final String ASKS = "asks";
  private static final String ANSWER = "answer";
  private static final int RUN_RECORDS = 1_000;
  private static final int RUNS_PER_COMMIT = 10;

  private final CommitIntervalDriver driver;
  private final byte[][] keys;
  private long digest;

  private VersionedJob(CommitIntervalDriver driver, String[] keys) {
    this.driver = driver;
    this.keys = new byte[keys.length][];
    for (int i = 0; i < keys.length; i++) {
      this.keys[i] = keys[i].getBytes(StandardCharsets.UTF_8);
    }
  }

  /** Arguments: the file of the operations, a folder, the history retention and the segment interval in ms. */
  public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
    VersionedOperations asked = VersionedOperations.read(Path.of(arguments[0]));
    Duration retention = Duration.ofMillis(Long.parseLong(arguments[2]));
    Duration segment = Duration.ofMillis(Long.parseLong(arguments[3]));
    String figures = "";
    for (int limit : new int[] {VersionedOperations.WARM_UP, Integer.MAX_VALUE}) {
      Properties settings = Settings.common(Path.of(arguments[1], "kafka-" + limit));
      try (CommitIntervalDriver driver = new CommitIntervalDriver(topology(retention, segment, settings), settings)) {
        VersionedJob job = new VersionedJob(driver, asked.keys());
        long[] nothing = new long[asked.readKey().length];
        double put = job.process(UPDATES, asked.putKey(), asked.putValue(), asked.putTime(), limit);
        double join = job.process(ASKS, asked.readKey(), nothing, asked.readTime(), limit);
        figures =
            "{\"put in a job\": %s, \"join\": %s}"
                .formatted(Versioned.figure(put, job.digest), Versioned.figure(join, job.digest));
      }
    }
    System.out.println(figures);
  }

  private static Topology topology(Duration retention, Duration segment, Properties settings) {
    Serde<String> key = Serdes.String();
    Serde<Long> value = Serdes.Long();
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, Long> table =
        builder.table(
            UPDATES,
            Consumed.with(key, value),
            Materialized.as(Stores.persistentVersionedKeyValueStore("store", retention, segment)));
    builder.stream(ASKS, Consumed.with(key, value))
        .leftJoin(
            table,
            (ask, found) -> found == null ? VersionedOperations.NOTHING : found,
            Joined.with(key, value, value))
        .to(ANSWER, Produced.with(key, value));
    return builder.build(settings);
  }

  /** The CPU seconds that it takes. */
  private double process(String topic, int[] key, long[] value, long[] timestamp, int limit) {
    int count = Math.min(key.length, limit);
    TopicPartition partition = new TopicPartition(topic, 0);
    long began = Versioned.cpuNanos();
    int runs = 0;
    for (int first = 0; first < count; first += RUN_RECORDS) {
      int end = Math.min(first + RUN_RECORDS, count);
      List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>(end - first);
      for (int i = first; i < end; i++) {
        records.add(record(partition, i, timestamp[i], keys[key[i]], value[i]));
      }
      driver.process(partition, records);
      runs++;
      if (runs % RUNS_PER_COMMIT == 0) {
        commit();
      }
    }
    commit();
    return (Versioned.cpuNanos() - began) / 1e9;
  }

  private static ConsumerRecord<byte[], byte[]> record(
      TopicPartition partition, long offset, long timestampMs, byte[] key, long value) {
    return new ConsumerRecord<>(
        partition.topic(),
        partition.partition(),
        offset,
        timestampMs,
        TimestampType.CREATE_TIME,
        key.length,
        Long.BYTES,
        key,
        ByteBuffer.allocate(Long.BYTES).putLong(value).array(),
        new RecordHeaders(),
        Optional.empty());
  }

  private void commit() {
    for (ProducerRecord<byte[], byte[]> record : driver.commit()) {
      if (record.topic().equals(ANSWER)) {
        digest = digest * 31 + ByteBuffer.wrap(record.value()).getLong();
      }
    }
  }
}
