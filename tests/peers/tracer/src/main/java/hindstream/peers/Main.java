package hindstream.peers;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs test classes, and writes down what their drivers do.
 *
 * <p>Arguments: an empty folder, and names of classes. The folder has a file for each driver, and {@code tests.tsv}: of
 * each test its name, how it has ended, how many drivers it had, and the first line of its error.
 */
public final class Main {
  private static Path folder;
  private static String test = "";
  private static int written;

  private Main() {}

  static String test() {
    return test;
  }

  static String kafka() {
    Properties told = new Properties();
    try (InputStream file = KafkaStreams.class.getResourceAsStream("/kafka/kafka-streams-version.properties")) {
      told.load(file);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return told.getProperty("version");
  }

  /** The file of the next driver. */
  static OutputStream next() throws IOException {
    return Files.newOutputStream(folder.resolve(String.format("%05d.json", written++)));
  }

  /** See the class. */
  public static void main(String[] arguments) throws IOException {
    folder = Path.of(arguments[0]);
    try (PrintWriter tests = new PrintWriter(Files.newBufferedWriter(folder.resolve("tests.tsv")))) {
      for (int number = 1; number < arguments.length; number++) {
        try {
          var request = LauncherDiscoveryRequestBuilder.request().selectors(selectClass(arguments[number])).build();
          LauncherFactory.create().execute(request, new Listener(tests));
        } catch (RuntimeException | LinkageError error) {
          tests.printf("%s\tnot run\t0\t%s%n", arguments[number], line(error));
        }
        tests.flush();
      }
    }
    System.exit(0);
  }

  private static String line(Throwable error) {
    return error == null ? "" : String.valueOf(error).lines().findFirst().orElse("").replace('\t', ' ');
  }

  private static final class Listener implements TestExecutionListener {
    private final PrintWriter tests;
    private int before;

    Listener(PrintWriter tests) {
      this.tests = tests;
    }


    @Override
    public void executionStarted(TestIdentifier identifier) {
      if (identifier.isTest()) { // its object may have built a topology already
        test = name(identifier);
        before = written;
      }
    }

    @Override
    public void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
      if (identifier.isTest()) {
        Tracer.forget();
        String status = result.getStatus().name().toLowerCase();
        Throwable error = result.getThrowable().orElse(null);
        tests.printf("%s\t%s\t%d\t%s%n", name(identifier), status, written - before, line(error));
      }
    }

    @Override
    public void executionSkipped(TestIdentifier identifier, String reason) {
      if (identifier.isTest()) {
        tests.printf("%s\tskipped\t0\t%s%n", name(identifier), reason);
      }
    }

    private String name(TestIdentifier identifier) {
      String display = identifier.getDisplayName();
      String method = identifier.getSource()
          .filter(MethodSource.class::isInstance)
          .map(MethodSource.class::cast)
          .map(source -> source.getClassName() + "#" + source.getMethodName())
          .orElse(identifier.getUniqueId());
      boolean invoked = identifier.getUniqueId().contains("test-template-invocation");
      return invoked ? method + display.replaceAll("\\s+", " ") : method;
    }
  }
}
