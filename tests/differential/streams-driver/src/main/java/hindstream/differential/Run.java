package hindstream.differential;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/** One program: its topology, and what becomes of its records. */
final class Run {
  private static final String EMIT_INTERVAL =
      "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__";
  private static final String EMIT_INTERVAL_OF_WINDOWS = "__emit.interval.ms.kstreams.windowed.aggregation__";

  private static final KeySerde KEYS = new KeySerde();
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
    JsonNode steps = program.get("steps");
    Functions.useKeys(Keys.of(program));
    TopologyOfProgram built = new TopologyOfProgram(steps);
    LowLevel lowLevel = new LowLevel();
    topology = LowLevel.is(steps) ? lowLevel.build(steps) : built.build(settings());
    Map<String, List<List<Object>>> outputs = new HashMap<>();
    long now = program.get("records").path(0).path(3).asLong();
    try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings(), Instant.ofEpochMilli(now))) {
      Map<String, TestInputTopic<Object, Object>> inputs = new HashMap<>();
      int number = 0;
      for (JsonNode record : program.get("records")) {
        Object key = Functions.keys().read(record.get(1));
        Object value = value(record.get(2));
        inputs
            .computeIfAbsent(
                record.get(0).asText(),
                topic -> driver.createInputTopic(topic, KEYS.serializer(), VALUES.serializer()))
            .pipeInput(new TestRecord<>(key, value, headers(number++), record.get(3).asLong()));
        // The wall clock shows what it would if each record were processed at its timestamp.
        long passed = record.get(3).asLong() - now;
        if (passed > 0) {
          driver.advanceWallClockTime(Duration.ofMillis(passed));
          now += passed;
        }
      }
      outputs.putAll(built.observed());
      (LowLevel.is(steps) ? lowLevel.sinks() : built.sinks()).forEach(topic -> outputs.put(topic, output(driver, topic)));
    }
    return Map.of("describe", describe(), "outputs", outputs);
  }

  private static Object value(JsonNode value) {
    return value.isNull() ? null : value.isNumber() ? (Object) value.asLong() : value.asText();
  }

  /** Of a record: its number, but not of every third. */
  private static Headers headers(int number) {
    Headers headers = new RecordHeaders();
    return number % 3 == 2 ? headers : headers.add("number", String.valueOf(number).getBytes(UTF_8));
  }

  private static List<List<Object>> output(TopologyTestDriver driver, String topic) {
    List<List<Object>> rows = new ArrayList<>();
    var output = driver.createOutputTopic(topic, KEYS.deserializer(), VALUES.deserializer());
    for (TestRecord<Object, Object> record : output.readRecordsToList()) {
      List<Object> row = new ArrayList<>();
      row.add(shown(record.key()));
      row.add(record.value());
      row.add(record.timestamp());
      List<String> headers = new ArrayList<>();
      record.headers().forEach(header -> headers.add(header.key() + "=" + new String(header.value(), UTF_8)));
      row.add(String.join(" ", headers));
      rows.add(row);
    }
    return rows;
  }

  /** A key as data: of a windowed one [key, start, end]. */
  static Object shown(Object key) {
    return key instanceof Windowed<?> windowed
        ? List.of(shown(windowed.key()), windowed.window().start(), Functions.end(windowed))
        : key instanceof Bytes ? Functions.text(key) : key;
  }

  private Properties settings() {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, KeySerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, ValueSerde.class);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
    settings.put(
        StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG,
        program.path("optimization").asText(StreamsConfig.NO_OPTIMIZATION));
    settings.put(EMIT_INTERVAL, 0L);
    settings.put(EMIT_INTERVAL_OF_WINDOWS, 0L);
    for (String pair : System.getenv().getOrDefault("KAFKA_STREAMS_SETTINGS", "").split(" ")) {
      if (!pair.isEmpty()) {
        settings.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
      }
    }
    program
        .get("steps")
        .forEach(
            step -> {
              if (step.has("fails")) {
                settings.put(
                    StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
                    LogAndContinueProcessingExceptionHandler.class);
              }
            });
    if (!program.path("rocksdb").asBoolean()) {
      settings.put(
          StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
          BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
    }
    return settings;
  }
}
