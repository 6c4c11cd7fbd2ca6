package hindstream.testbed;

import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** The topologies, by name. */
final class Topologies {
  private static final Map<String, Definition> ALL = new TreeMap<>();

  static {
    ALL.put("versioned-join", TableJoin::versioned);
    ALL.put("plain-table", TableJoin::plain);
    ALL.put("windows", Windows::define);
    ALL.put("sessions", Sessions::define);
    ALL.put("reduce", Reduce::define);
    ALL.put("through", Through::define);
    ALL.put("stream-join", StreamJoin::define);
    ALL.put("foreign-key", ForeignKey::define);
    ALL.put("remembered", Remembered::define);
    ALL.put("final-windows", FinalWindows::define);
    ALL.put("kept", Kept::define);
    ALL.put("optimized", Optimized::define);
  }

  private Topologies() {}

  static Topology build(String name, Settings settings) {
    if (!ALL.containsKey(name)) {
      throw new IllegalArgumentException("there is no topology " + name + ", but " + ALL.keySet());
    }
    StreamsBuilder builder = new StreamsBuilder();
    ALL.get(name).define(builder, settings);
    return builder.build(settings.properties());
  }

  private interface Definition {
    void define(StreamsBuilder builder, Settings settings);
  }
}
