package hindstream.testbed;

import java.util.Map;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** The topologies, by name. */
final class Topologies {
  private static final Map<String, Definition> ALL =
      Map.of(
          "versioned-join", TableJoin::versioned,
          "plain-table", TableJoin::plain,
          "windows", Windows::define,
          "sessions", Sessions::define,
          "reduce", Reduce::define,
          "through", Through::define,
          "stream-join", StreamJoin::define,
          "foreign-key", ForeignKey::define,
          "remembered", Remembered::define,
          "final-windows", FinalWindows::define,
          "kept", Kept::define);

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
