package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.streams.Topology;

/** Builds a program of the Processor API: tests/differential/low_level.py does the same. */
final class LowLevel {
  private static final KeySerde KEYS = new KeySerde();
  private static final ValueSerde VALUES = new ValueSerde();

  private final Topology topology = new Topology();
  private final Set<String> sinks = new LinkedHashSet<>();

  /** Whether a program is one. */
  static boolean is(JsonNode steps) {
    return steps.size() > 0 && steps.get(0).get("op").asText().startsWith("add_");
  }

  Topology build(JsonNode steps) {
    Map<String, List<String>> connected = new LinkedHashMap<>();
    for (JsonNode step : steps) {
      switch (step.get("op").asText()) {
        case "add_source" -> {
          String name = step.get("name").asText();
          if (step.has("pattern")) {
            topology.addSource(name, Pattern.compile(step.get("pattern").asText()));
          } else {
            topology.addSource(name, texts(step.get("topics")));
          }
        }
        case "add_processor" -> {
          String name = step.get("name").asText();
          topology.addProcessor(name, () -> new Telling(step), texts(step.get("parents")));
          if (step.hasNonNull("uses")) {
            connected.computeIfAbsent(step.get("uses").asText(), store -> new ArrayList<>()).add(name);
          }
        }
        case "add_global" -> {
          String store = step.get("store").asText();
          topology.addGlobalStore(
              Kept.texts(store).withLoggingDisabled(),
              store + "-source",
              KEYS.deserializer(),
              VALUES.deserializer(),
              step.get("topic").asText(),
              store + "-writer",
              () -> new Filling(store));
        }
        case "add_read_only" -> {
          String store = step.get("store").asText();
          topology.addReadOnlyStateStore(
              Kept.texts(store).withLoggingDisabled(),
              store + "-source",
              KEYS.deserializer(),
              VALUES.deserializer(),
              step.get("topic").asText(),
              store + "-writer",
              () -> new Filling(store));
        }
        default -> {
          String topic = step.get("topic").asText();
          sinks.add(topic);
          topology.addSink(step.get("name").asText(), topic, texts(step.get("parents")));
        }
      }
    }
    for (JsonNode step : steps) {
      if (step.has("read_only")) {
        topology.connectProcessorAndStateStores(step.get("name").asText(), step.get("read_only").asText());
      }
      if (step.has("own")) {
        topology.addStateStore(OwnStores.builder(step.get("own")));
        topology.connectProcessorAndStateStores(step.get("name").asText(), step.get("own").get("name").asText());
      }
      if (step.has("lists")) {
        topology.addStateStore(Kept.lists(step.get("lists").asText()), step.get("name").asText());
      }
    }
    connected.forEach((store, processors) -> topology.addStateStore(Kept.texts(store), processors.toArray(new String[0])));
    return topology;
  }

  /** The topics that are written. */
  Set<String> sinks() {
    return sinks;
  }

  private static String[] texts(JsonNode list) {
    List<String> texts = new ArrayList<>();
    list.forEach(text -> texts.add(text.asText()));
    return texts.toArray(new String[0]);
  }
}
