package hindstream.benchmarks;

import static hindstream.benchmarks.Works.ANSWER;
import static hindstream.benchmarks.Works.CLICKS;
import static hindstream.benchmarks.Works.RATES;

import hindstream.benchmarks.TopicFile.Writer;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.streams.KafkaStreams;

/** Runs a work as an application over a real broker, to the end of its topics, and reads its answer. */
final class Application {
  private static final Duration POLL = Duration.ofMillis(100);

  private Application() {}

  /** Arguments: the work; the folder with the broker's; the number of partitions. */
  public static void main(String[] arguments) throws Exception {
    String work = arguments[0];
    Path folder = Path.of(arguments[1]);
    int partitions = Integer.parseInt(arguments[2]);
    try (Broker broker = Broker.start(folder.resolve("broker"));
        Consumer<byte[], byte[]> consumer = consumer(broker)) {
      List<TopicPartition> input = partitionsOf(CLICKS, partitions);
      if (Works.readsRates(work)) {
        input.addAll(partitionsOf(RATES, partitions));
      }
      long records = consumer.endOffsets(input).values().stream().mapToLong(Long::longValue).sum();
      run(work, Settings.application(folder.resolve("state"), broker.bootstrapServers()), records);
      read(consumer, partitionsOf(ANSWER, partitions), folder);
    }
  }

  private static void run(String work, Properties settings, long records) throws InterruptedException {
    try (KafkaStreams streams = new KafkaStreams(Works.topology(work, settings), settings)) {
      streams.start();
      while (processed(streams) < records) {
        if (streams.state().hasCompletedShutdown()) {
          throw new IllegalStateException("the application failed");
        }
        Thread.sleep(POLL.toMillis());
      }
    }
  }

  private static long processed(KafkaStreams streams) {
    return streams.metrics().values().stream()
        .filter(metric -> metric.metricName().group().equals("stream-thread-metrics"))
        .filter(metric -> metric.metricName().name().equals("process-total"))
        .mapToLong(metric -> ((Double) metric.metricValue()).longValue())
        .sum();
  }

  private static Consumer<byte[], byte[]> consumer(Broker broker) {
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    return new KafkaConsumer<>(
        Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers(),
            ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed"),
        bytes,
        bytes);
  }

  private static List<TopicPartition> partitionsOf(String topic, int partitions) {
    List<TopicPartition> all = new ArrayList<>();
    for (int partition = 0; partition < partitions; partition++) {
      all.add(new TopicPartition(topic, partition));
    }
    return all;
  }

  private static void read(Consumer<byte[], byte[]> consumer, Collection<TopicPartition> partitions, Path folder)
      throws IOException {
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    for (TopicPartition partition : partitions) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      try (Writer answer = new Writer(folder.resolve("answer-" + partition.partition()))) {
        while (consumer.position(partition) < ends.get(partition)) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
            answer.write(record.timestamp(), record.key(), record.value());
          }
        }
      }
    }
  }
}
