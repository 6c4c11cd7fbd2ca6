package hindstream.testbed;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * A Kafka Streams application that does what its standard input says, until that ends; then it stops in good order.
 *
 * <p>Commands: ["catch-up"] waits until it has processed and committed all that lies in its topics; ["dump", store] and
 * ["versions", store, key...] give what a store holds; ["restored"] from how many records the stores have been restored.
 * Each is carried out once the application runs, its stores
 * restored. The answer is a JSON object for each row, then {"done": command}; or {"error": text}.
 */
public final class StreamsApp {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int POLL_MS = 20;
  private static final Duration STOP = Duration.ofSeconds(30);

  private final Commands commands = new Commands();
  private final KafkaStreams streams;
  private final Progress progress;
  private final StoreReader reader;
  private final Restored restored = new Restored();
  private volatile Throwable failure;

  private StreamsApp(KafkaStreams streams, Progress progress) {
    this.streams = streams;
    this.progress = progress;
    this.reader = new StoreReader(streams);
    streams.setUncaughtExceptionHandler(this::fail);
    streams.setGlobalStateRestoreListener(restored);
  }

  /** Arguments: the topology, then settings: name=value. */
  public static void main(String[] arguments) throws Exception {
    Settings settings = new Settings(Arrays.asList(arguments).subList(1, arguments.length));
    KafkaStreams streams =
        new KafkaStreams(Topologies.build(arguments[0], settings), settings.properties());
    boolean isClean;
    try (Admin admin = Admin.create(settings.properties())) {
      Progress progress = new Progress(streams, admin, settings.text("application.id"));
      isClean = new StreamsApp(streams, progress).run();
    }
    System.exit(isClean ? 0 : 1);
  }

  /** Whether nothing has failed. */
  private boolean run() throws InterruptedException {
    streams.start();
    for (List<String> command = commands.next(); command != null; command = commands.next()) {
      try {
        await(() -> streams.state() == State.RUNNING);
        execute(command);
        print(Map.of("done", command));
      } catch (ExecutionException | RuntimeException error) {
        error.printStackTrace();
        print(Map.of("error", error.toString()));
      }
    }
    // It leaves its group: the next one need not wait until the broker misses it.
    CloseOptions options = CloseOptions.groupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP);
    return streams.close(options.withTimeout(STOP)) && failure == null;
  }

  private void execute(List<String> command) throws ExecutionException, InterruptedException {
    List<String> arguments = command.subList(1, command.size());
    switch (command.get(0)) {
      case "catch-up" -> await(progress::isComplete);
      case "dump" -> reader.dump(arguments.get(0), StreamsApp::print);
      case "versions" ->
          reader.versions(arguments.get(0), arguments.subList(1, arguments.size()), StreamsApp::print);
      case "restored" -> restored.dump(StreamsApp::print);
      default -> throw new IllegalArgumentException("no such command");
    }
  }

  private void await(Condition condition) throws ExecutionException, InterruptedException {
    while (!condition.holds()) {
      if (failure != null || streams.state().isShuttingDown() || streams.state().hasCompletedShutdown()) {
        throw new IllegalStateException("the application has failed", failure);
      }
      if (commands.haveEnded()) {
        throw new IllegalStateException("nobody waits any more");
      }
      Thread.sleep(POLL_MS);
    }
  }

  private StreamThreadExceptionResponse fail(Throwable error) {
    error.printStackTrace();
    failure = error;
    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
  }

  private static void print(Map<String, ?> row) {
    try {
      System.out.println(JSON.writeValueAsString(row));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private interface Condition {
    boolean holds() throws ExecutionException, InterruptedException;
  }
}
