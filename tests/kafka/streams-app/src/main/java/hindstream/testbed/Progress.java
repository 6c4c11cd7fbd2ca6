package hindstream.testbed;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;

/** Tells whether an application has committed all that lies in its topics. */
final class Progress {
  private final KafkaStreams streams;
  private final Admin admin;
  private final String group;

  Progress(KafkaStreams streams, Admin admin, String group) {
    this.streams = streams;
    this.admin = admin;
    this.group = group;
  }

  /**
   * Whether it has caught up with the ends as they are now.
   *
   * <p>What it has committed is asked for first: all that came of it is then in its repartition topics, whose ends
   * are asked for after.
   */
  boolean isComplete() throws ExecutionException, InterruptedException {
    Set<TopicPartition> sources =
        streams.metadataForLocalThreads().stream()
            .flatMap(thread -> thread.activeTasks().stream())
            .flatMap(task -> task.topicPartitions().stream())
            .collect(Collectors.toSet());
    Map<TopicPartition, OffsetAndMetadata> committed =
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    Map<TopicPartition, ListOffsetsResultInfo> begins = offsets(sources, OffsetSpec.earliest());
    Map<TopicPartition, ListOffsetsResultInfo> ends = offsets(sources, OffsetSpec.latest());
    return !sources.isEmpty()
        && sources.stream()
            .allMatch(
                source -> {
                  OffsetAndMetadata position = committed.get(source);
                  long from = position == null ? begins.get(source).offset() : position.offset();
                  return from >= ends.get(source).offset();
                });
  }

  private Map<TopicPartition, ListOffsetsResultInfo> offsets(Set<TopicPartition> of, OffsetSpec spec)
      throws ExecutionException, InterruptedException {
    return admin.listOffsets(of.stream().collect(Collectors.toMap(one -> one, one -> spec))).all().get();
  }
}
