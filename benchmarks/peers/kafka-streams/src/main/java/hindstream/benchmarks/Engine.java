package hindstream.benchmarks;

import static hindstream.benchmarks.Works.ANSWER;
import static hindstream.benchmarks.Works.CLICKS;
import static hindstream.benchmarks.Works.RATES;

import hindstream.benchmarks.TopicFile.Reader;
import hindstream.benchmarks.TopicFile.Writer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.streams.CommitIntervalDriver;
import org.apache.kafka.streams.Topology;

/** Runs a work, or a query of Nexmark, in Kafka Streams' engine without a broker: a test driver for each partition. */
final class Engine implements AutoCloseable {
  private static final int RUN_RECORDS = 1_000;
  private static final int COMMIT_INTERVAL_RECORDS = 10_000;

  private final CommitIntervalDriver driver;
  private final Writer answer;
  private int uncommitted;

  private Engine(String work, Properties settings, Path answer) throws IOException, ReflectiveOperationException {
    this.driver = new CommitIntervalDriver(topology(work, settings), settings);
    this.answer = new Writer(answer);
  }

  /** Arguments: the work; the folder of the input; an empty one; the number of partitions; that of threads. */
  public static void main(String[] arguments) throws Exception {
    String work = arguments[0];
    Path input = Path.of(arguments[1]);
    Path output = Path.of(arguments[2]);
    ExecutorService threads = Executors.newFixedThreadPool(Integer.parseInt(arguments[4]));
    List<Future<?>> partitions = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(arguments[3]); i++) {
      int partition = i;
      partitions.add(
          threads.submit(
              () -> {
                run(work, input, output, partition, Integer.parseInt(arguments[3]));
                return null;
              }));
    }
    threads.shutdown();
    for (Future<?> partition : partitions) {
      partition.get();
    }
  }

  private static void run(String work, Path input, Path output, int partition, int partitions)
      throws IOException, ReflectiveOperationException {
    Properties settings = Settings.common(output.resolve("state-" + partition));
    try (Engine engine = new Engine(work, settings, output.resolve("answer-" + partition))) {
      if (Nexmark.has(work)) {
        Nexmark.fill(work, engine.driver, input, partitions);
      }
      List<Source> sources = new ArrayList<>();
      for (String topic : topics(work)) {
        sources.add(new Source(topic, input.resolve(topic + "-" + partition)));
      }
      engine.process(sources.toArray(Source[]::new));
      for (Source source : sources) {
        source.close();
      }
    }
  }

  private static Topology topology(String work, Properties settings) {
    return Nexmark.has(work) ? Nexmark.topology(work, settings) : Works.topology(work, settings);
  }

  private static List<String> topics(String work) {
    if (Nexmark.has(work)) {
      return Nexmark.topics(work);
    }
    return Works.readsRates(work) ? List.of(RATES, CLICKS) : List.of(CLICKS);
  }

  /** Processes the records in the order in which a task takes them up; of equal times the earlier source's first. */
  private void process(Source... sources) throws IOException {
    for (Source next = first(sources); next != null; next = first(sources)) {
      List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>(RUN_RECORDS);
      do {
        records.add(next.take());
      } while (records.size() < RUN_RECORDS && first(sources) == next);
      driver.process(next.partition, records);
      uncommitted += records.size();
      if (uncommitted >= COMMIT_INTERVAL_RECORDS) {
        commit();
      }
    }
    commit();
  }

  private static Source first(Source... sources) {
    Source first = null;
    for (Source source : sources) {
      if (!source.reader.ended() && (first == null || source.orderTimeMs < first.orderTimeMs)) {
        first = source;
      }
    }
    return first;
  }

  private void commit() throws IOException {
    for (ProducerRecord<byte[], byte[]> record : driver.commit()) {
      if (record.topic().equals(ANSWER)) {
        answer.write(record.timestamp(), record.key(), record.value());
      }
    }
    uncommitted = 0;
  }

  @Override
  public void close() throws IOException {
    driver.close();
    answer.close();
  }

  /** A partition of a topic, as a task takes it up: by the largest timestamp so far. */
  private static final class Source implements AutoCloseable {
    private final TopicPartition partition;
    private final Reader reader;
    private long orderTimeMs;
    private long offset;

    private Source(String topic, Path file) throws IOException {
      this.partition = new TopicPartition(topic, 0); // the number that a test driver gives to all its partitions
      this.reader = new Reader(file);
      this.orderTimeMs = Long.MIN_VALUE;
      advance();
    }

    private ConsumerRecord<byte[], byte[]> take() throws IOException {
      ConsumerRecord<byte[], byte[]> taken =
          record(partition, offset++, reader.timestampMs(), reader.key(), reader.value());
      reader.next();
      advance();
      return taken;
    }

    private static ConsumerRecord<byte[], byte[]> record(
        TopicPartition partition, long offset, long timestampMs, byte[] key, byte[] value) {
      return new ConsumerRecord<>(
          partition.topic(),
          partition.partition(),
          offset,
          timestampMs,
          TimestampType.CREATE_TIME,
          key.length,
          value.length,
          key,
          value,
          new RecordHeaders(),
          Optional.empty());
    }

    private void advance() {
      if (!reader.ended()) {
        orderTimeMs = Math.max(orderTimeMs, reader.timestampMs());
      }
    }

    @Override
    public void close() throws IOException {
      reader.close();
    }
  }
}
