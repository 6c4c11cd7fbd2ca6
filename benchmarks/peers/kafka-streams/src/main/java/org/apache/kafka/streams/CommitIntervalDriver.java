package org.apache.kafka.streams;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A {@link TopologyTestDriver} that commits when it is told to, as a stream thread does once per commit interval. Piped
 * one at a time, each record is followed by a commit, which costs more than the record and lets no cache combine
 * anything. The driver's task is visible in its package alone.
 */
public final class CommitIntervalDriver extends TopologyTestDriver {
  public CommitIntervalDriver(Topology topology, Properties settings) {
    super(topology, settings);
  }

  /** Processes records of one source topic, in their order. */
  public void process(TopicPartition partition, List<ConsumerRecord<byte[], byte[]>> records) {
    task.addRecords(partition, records);
    for (int i = 0; i < records.size(); i++) {
      task.process(0);
      task.maybePunctuateStreamTime();
    }
  }

  /** Flushes caches, commits, and makes the output visible. */
  public void commit() {
    advanceWallClockTime(Duration.ofMillis(1));
  }
}
