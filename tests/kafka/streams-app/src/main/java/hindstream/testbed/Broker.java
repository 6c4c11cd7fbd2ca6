package hindstream.testbed;

import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.Kafka;
import kafka.tools.StorageTool;
import org.apache.kafka.common.Uuid;

/** A broker, which formats its folder where it is new: two tools in one Java, which saves a second. */
public final class Broker {
  private Broker() {}

  /** Argument: the broker's properties. */
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
      properties.load(file);
    }
    if (Files.notExists(Path.of(properties.getProperty("log.dirs"), "meta.properties"))) {
      String[] format = {"format", "--cluster-id", Uuid.randomUuid().toString(), "--config", arguments[0]};
      StorageTool.execute(format, System.out);
    }
    Kafka.main(arguments);
  }
}
