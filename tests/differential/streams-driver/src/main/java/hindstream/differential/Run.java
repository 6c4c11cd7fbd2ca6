package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/** One program: its topology, and what becomes of its records. */
final class Run {
  private static final String EMIT_INTERVAL =
      "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__";

  private static final ValueSerde VALUES = new ValueSerde();

  private final JsonNode program;
  private final String stateDir;
  private Topology topology;

  Run(JsonNode program, String stateDir) {
    this.program = program;
    this.stateDir = stateDir;
  }

  /** The topology's text; empty if there is none. */
  String describe() {
    return topology == null ? "" : topology.describe().toString();
  }

  Map<String, Object> answer() {
    TopologyOfProgram built = new TopologyOfProgram(program.get("steps"));
    topology = built.build();
    Map<String, List<List<Object>>> outputs = new HashMap<>();
    try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings(), Instant.EPOCH)) {
      Map<String, TestInputTopic<String, Object>> inputs = new HashMap<>();
      for (JsonNode record : program.get("records")) {
        String key = record.get(1).isNull() ? null : record.get(1).asText();
        Object value = record.get(2).isNull() ? null : record.get(2).asText();
        inputs
            .computeIfAbsent(
                record.get(0).asText(),
                topic ->
                    driver.createInputTopic(
                        topic, new StringSerializer(), VALUES.serializer()))
            .pipeInput(key, value, record.get(3).asLong());
      }
      built
          .sinks()
          .forEach((topic, windowSize) -> outputs.put(topic, output(driver, topic, windowSize)));
    }
    return Map.of("describe", describe(), "outputs", outputs);
  }

  private static List<List<Object>> output(TopologyTestDriver driver, String topic, Long windowSize) {
    List<List<Object>> rows = new ArrayList<>();
    if (windowSize == null) {
      read(driver, topic, new StringDeserializer(), rows, key -> key);
    } else {
      Deserializer<Windowed<String>> keys =
          new TimeWindowedDeserializer<>(new StringDeserializer(), windowSize);
      read(
          driver,
          topic,
          keys,
          rows,
          key -> List.of(key.key(), key.window().start(), key.window().end()));
    }
    return rows;
  }

  private static <K> void read(
      TopologyTestDriver driver,
      String topic,
      Deserializer<K> keys,
      List<List<Object>> rows,
      java.util.function.Function<K, Object> shown) {
    var output = driver.createOutputTopic(topic, keys, VALUES.deserializer());
    for (TestRecord<K, Object> record : output.readRecordsToList()) {
      List<Object> row = new ArrayList<>();
      row.add(record.key() == null ? null : shown.apply(record.key()));
      row.add(record.value());
      row.add(record.timestamp());
      rows.add(row);
    }
  }

  private Properties settings() {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, ValueSerde.class);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
    settings.put(EMIT_INTERVAL, 0L);
    if (!program.path("rocksdb").asBoolean()) {
      settings.put(
          StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
          BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
    }
    return settings;
  }
}
