package hindstream.benchmarks.nexmark;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** Runs SQL statements in a cluster within this process, and waits for the last one. */
final class Nexmark {
  private Nexmark() {}

  /** Arguments: a file of statements, separated by lines of ";"; a file of settings, "name: value" a line. */
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    for (String line : Files.readAllLines(Path.of(arguments[1]))) {
      String[] setting = line.split(": ", 2);
      settings.setString(setting[0], setting[1]);
    }
    StreamExecutionEnvironment cluster = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    StreamTableEnvironment tables =
        StreamTableEnvironment.create(
            cluster, EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    String[] statements = Files.readString(Path.of(arguments[0])).split("\n;\n");
    for (int i = 0; i < statements.length - 1; i++) {
      tables.executeSql(statements[i]);
    }
    tables.executeSql(statements[statements.length - 1]).await();
    System.exit(0); // threads of the cluster would keep the process alive for a while
  }
}
