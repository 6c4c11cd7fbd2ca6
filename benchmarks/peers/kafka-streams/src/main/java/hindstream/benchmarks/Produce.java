package hindstream.benchmarks;

import static hindstream.benchmarks.Works.ANSWER;
import static hindstream.benchmarks.Works.CLICKS;
import static hindstream.benchmarks.Works.RATES;

import hindstream.benchmarks.TopicFile.Reader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes a broker's folder with the topics that the works read. */
final class Produce {
  private static final int BATCH_BYTES = 1 << 18;

  private Produce() {}

  /** Arguments: the folder of the input; the broker's folder, a new one; the number of partitions. */
  public static void main(String[] arguments) throws Exception {
    Path input = Path.of(arguments[0]);
    int partitions = Integer.parseInt(arguments[2]);
    try (Broker broker = Broker.start(Path.of(arguments[1]))) {
      Map<String, Object> settings = Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers());
      try (Admin admin = Admin.create(settings)) {
        List<NewTopic> topics =
            Stream.of(CLICKS, RATES, ANSWER).map(topic -> new NewTopic(topic, partitions, (short) 1)).toList();
        admin.createTopics(topics).all().get();
      }
      for (String topic : List.of(CLICKS, RATES)) {
        for (int partition = 0; partition < partitions; partition++) {
          produce(broker, topic, partition, input.resolve(topic + "-" + partition));
        }
      }
    }
  }

  private static void produce(Broker broker, String topic, int partition, Path file) throws IOException {
    Map<String, Object> settings =
        Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers(),
            ProducerConfig.BATCH_SIZE_CONFIG, BATCH_BYTES,
            ProducerConfig.LINGER_MS_CONFIG, 100);
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (Producer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes);
        Reader reader = new Reader(file)) {
      for (; !reader.ended(); reader.next()) {
        producer.send(new ProducerRecord<>(topic, partition, reader.timestampMs(), reader.key(), reader.value()));
      }
    }
  }
}
