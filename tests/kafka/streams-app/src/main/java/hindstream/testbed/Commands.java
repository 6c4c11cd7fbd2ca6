package hindstream.testbed;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Commands from the standard input, one JSON array of strings a line; knows early that no more will come. */
final class Commands {
  private static final List<String> END = List.of();

  private final BlockingQueue<List<String>> queue = new LinkedBlockingQueue<>();
  private volatile boolean haveEnded;

  Commands() {
    Thread thread = new Thread(this::read, "commands");
    thread.setDaemon(true);
    thread.start();
  }

  /** The next one; null: the input has ended. */
  List<String> next() throws InterruptedException {
    List<String> command = queue.take();
    return command == END ? null : command;
  }

  /** Whether the input has ended, whatever has been taken of it. */
  boolean haveEnded() {
    return haveEnded;
  }

  private void read() {
    ObjectMapper json = new ObjectMapper();
    try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        queue.add(List.of(json.readValue(line, String[].class)));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } finally {
      haveEnded = true;
      queue.add(END);
    }
  }
}
