package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Runs programs in Kafka Streams' TopologyTestDriver until its standard input ends.
 *
 * <p>A program is a line of JSON (tests/differential/program.py). The answer is a line: {"describe": text, "outputs":
 * {topic: [[key, value, timestamp], ...]}}, or {"error": text, "describe": text or null}. Of {"names": steps,
 * "settings": of its topology} (tests/differential/naming.py) it is {"describe": text} or {"error": text}. The argument is a folder for state.
 */
public final class Main {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Main() {}

  /** See the class. */
  public static void main(String[] arguments) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode program = JSON.readTree(line);
      System.out.println(
          JSON.writeValueAsString(
              program.has("names") ? named(program) : answer(program, arguments[0])));
    }
  }

  private static Map<String, Object> named(JsonNode program) {
    try {
      Properties settings = new Properties();
      settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
      settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
      program.get("settings").properties().forEach(of -> settings.put(of.getKey(), of.getValue().asText()));
      return Map.of("describe", new NamingProgram(settings).describe(program.get("names")));
    } catch (RuntimeException error) {
      return Map.of("error", error.toString());
    }
  }

  private static Map<String, Object> answer(JsonNode program, String stateDir) {
    Run run = new Run(program, stateDir);
    try {
      return run.answer();
    } catch (RuntimeException error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return Map.of("error", error + "; " + cause, "describe", run.describe());
    }
  }
}
