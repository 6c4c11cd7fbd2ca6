package hindstream.benchmarks;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Writer;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;

/** A broker in a process of its own: KRaft mode, broker and controller in one, on the loopback interface. */
final class Broker implements AutoCloseable {
  private static final int STOP_SECONDS = 120;
  private static final int POLL_MS = 100;

  private final Process process;
  private final String bootstrapServers;

  private Broker(Process process, String bootstrapServers) {
    this.process = process;
    this.bootstrapServers = bootstrapServers;
  }

  /** Runs one for a peer that is no Java, until the standard input ends, and says where. Argument: its folder. */
  public static void main(String[] arguments) throws Exception {
    try (Broker broker = start(Path.of(arguments[0]))) {
      broker.awaitPort();
      System.out.println(broker.bootstrapServers());
      System.in.transferTo(OutputStream.nullOutputStream());
    }
  }

  /** Starts a broker on what one has left in a folder, or on nothing. */
  static Broker start(Path folder) throws IOException, InterruptedException {
    String server = "127.0.0.1:" + freePort();
    Path logs = folder.resolve("logs");
    Path configuration = folder.resolve("server.properties");
    boolean isNew = Files.notExists(logs);
    Files.createDirectories(logs);
    try (Writer file = Files.newBufferedWriter(configuration)) {
      properties(server, "127.0.0.1:" + freePort(), logs).store(file, null);
    }
    if (isNew) {
      String cluster = Uuid.randomUuid().toString();
      String tool = "kafka.tools.StorageTool";
      if (java(folder, tool, "format", "-t", cluster, "-c", configuration.toString()).waitFor() != 0) {
        throw new IOException("a new folder for a broker could not be formatted; see broker.log in " + folder);
      }
    }
    Process process = java(folder, "kafka.Kafka", configuration.toString());
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroy)); // for when this process is stopped
    return new Broker(process, server);
  }

  private void awaitPort() throws InterruptedException, IOException {
    int port = Integer.parseInt(bootstrapServers.substring(bootstrapServers.indexOf(':') + 1));
    while (process.isAlive()) {
      try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
        return;
      } catch (ConnectException notYet) {
        Thread.sleep(POLL_MS);
      }
    }
    throw new IOException("the broker has ended; see its log");
  }

  String bootstrapServers() {
    return bootstrapServers;
  }

  @Override
  public void close() throws InterruptedException {
    process.destroy();
    if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly().waitFor();
    }
  }

  private static Properties properties(String server, String controller, Path logs) {
    Properties properties = new Properties();
    properties.putAll(
        Map.of(
            "process.roles", "broker,controller",
            "node.id", "1",
            "listeners", "PLAINTEXT://" + server + ",CONTROLLER://" + controller,
            "controller.listener.names", "CONTROLLER",
            "controller.quorum.voters", "1@" + controller,
            "log.dirs", logs.toString(),
            "log.retention.ms", "-1", // the records are older than a week
            "group.initial.rebalance.delay.ms", "0"));
    // There is one broker.
    for (String topic : List.of("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")) {
      properties.put(topic + ".replication.factor", "1");
    }
    properties.put("transaction.state.log.min.isr", "1");
    return properties;
  }

  private static Process java(Path folder, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-XX:+UseSerialGC", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(arguments));
    File log = folder.resolve("broker.log").toFile();
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
        .start();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }
}
