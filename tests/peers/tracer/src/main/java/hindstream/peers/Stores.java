package hindstream.peers;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;

/** What the stores of a driver hold at its end: those of keys and of windows. */
final class Stores {
  private static final int MOST = 2_000;

  private Stores() {}

  static ObjectNode told(TopologyTestDriver driver) {
    ObjectNode told = JsonNodeFactory.instance.objectNode();
    Map<String, StateStore> stores;
    try {
      stores = new TreeMap<>(driver.getAllStateStores());
    } catch (RuntimeException broken) {
      return told;
    }
    stores.forEach((name, store) -> {
      ArrayNode content = JsonNodeFactory.instance.arrayNode();
      try {
        if (store instanceof ReadOnlyKeyValueStore<?, ?> keyed) {
          try (var all = keyed.all()) {
            while (all.hasNext() && content.size() < MOST) {
              var one = all.next();
              content.addArray().add(Values.told(one.key)).add(Values.told(one.value));
            }
          }
        } else if (store instanceof ReadOnlyWindowStore<?, ?> windows) {
          try (var all = windows.all()) {
            while (all.hasNext() && content.size() < MOST) {
              var one = all.next();
              content.addArray().add(Values.told(one.key)).add(Values.told(one.value));
            }
          }
        } else {
          return;
        }
      } catch (RuntimeException notToBeRead) {
        return;
      }
      told.set(name, content);
    });
    return told;
  }
}
