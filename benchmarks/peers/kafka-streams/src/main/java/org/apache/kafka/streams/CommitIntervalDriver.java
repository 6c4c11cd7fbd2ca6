package org.apache.kafka.streams;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A {@link TopologyTestDriver} without what costs time in the driver alone: a commit after each record, which lets no
 * cache combine anything, and a search for the topic of each record that is produced, changelogs included. Commits when
 * it is told to, as a stream thread does once per commit interval.
 *
 * <p>In this package, because the driver's task is visible here alone.
 */
public final class CommitIntervalDriver extends TopologyTestDriver {
  private final MockProducer<byte[], byte[]> producer;

  public CommitIntervalDriver(Topology topology, Properties settings) throws ReflectiveOperationException {
    super(topology, unwaiting(settings));
    Field field = TopologyTestDriver.class.getDeclaredField("producer");
    field.setAccessible(true);
    @SuppressWarnings("unchecked")
    MockProducer<byte[], byte[]> mock = (MockProducer<byte[], byte[]>) field.get(this);
    producer = mock;
  }

  /** A task waits for no other partition: who calls {@link #process} has chosen the next record. */
  private static Properties unwaiting(Properties settings) {
    Properties changed = new Properties();
    changed.putAll(settings);
    changed.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, StreamsConfig.MAX_TASK_IDLE_MS_DISABLED);
    return changed;
  }

  /** Processes records of one source topic, in their order. */
  public void process(TopicPartition partition, List<ConsumerRecord<byte[], byte[]>> records) {
    task.addRecords(partition, records);
    for (int i = 0; i < records.size(); i++) {
      if (!task.process(0)) {
        throw new IllegalStateException("the task took up no record of " + partition);
      }
      task.maybePunctuateStreamTime();
    }
  }

  /** Flushes caches and commits; takes away all that was produced since the last commit, changelog records included. */
  public List<ProducerRecord<byte[], byte[]>> commit() {
    task.prepareCommit(true);
    task.postCommit(true);
    List<ProducerRecord<byte[], byte[]>> produced = producer.history();
    producer.clear();
    return produced;
  }
}
