package hindstream.porting;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs an application's topology in Kafka Streams' TopologyTestDriver, until its standard input ends.
 *
 * <p>Arguments: a file of properties (empty: none), a folder for state. What is said over the standard streams is in
 * hindstream/porting/protocol.py. It needs nothing but Kafka Streams and its test utilities, 2.8 or later, and a Java
 * of 11 or later.
 */
public final class TopologyRunner {
  private static final int VERSION = 1;
  private static final int FAILED = 0;
  private static final int READY = 1;
  private static final int RECORD = 2;
  private static final int DONE = 3;
  private static final int TOPOLOGY = 1;
  private static final int RUN = 2;
  private static final int NO_RECORD = -1;

  private static final String EMIT_INTERVAL =
      "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__";
  private static final List<String> NOT_OF_THE_USER =
      Arrays.asList("java.", "javax.", "jdk.", "sun.", "org.apache.kafka.", "org.rocksdb.", "hindstream.porting.");

  private final DataInputStream in;
  private final DataOutputStream out;
  private final Properties settings;
  private final File stateDir;
  private String reference;
  private int runs;

  private TopologyRunner(DataInputStream in, DataOutputStream out, Properties settings, File stateDir) {
    this.in = in;
    this.out = out;
    this.settings = settings;
    this.stateDir = stateDir;
  }

  /** See the class. */
  public static void main(String[] arguments) throws IOException {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    PrintStream answers = System.out;
    System.setOut(System.err); // what the application prints is no answer
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(answers, 1 << 16));
    out.writeInt(VERSION);
    Properties settings = new Properties();
    if (!arguments[0].isEmpty()) {
      try (InputStream file = new FileInputStream(arguments[0])) {
        settings.load(file);
      }
    }
    new TopologyRunner(in, out, settings, new File(arguments[1])).serve();
  }

  private void serve() throws IOException {
    withDefaults();
    out.flush();
    for (int command = command(); command != NO_RECORD; command = command()) {
      if (command == TOPOLOGY) {
        reference = new String(readBytes(), StandardCharsets.UTF_8);
        describe();
      } else {
        List<Input> inputs = readInputs();
        settings.put(StreamsConfig.STATE_DIR_CONFIG, new File(stateDir, Integer.toString(runs++)).getPath());
        run(inputs);
      }
      out.flush();
    }
  }

  private void describe() throws IOException {
    try {
      Topology topology = topology();
      TopologyDescription described = topology.describe();
      out.writeByte(READY);
      writeText(described.toString());
      writeTexts(sources(described));
      writeTexts(sinks(described));
      writeTexts(suppliers(topology));
    } catch (Throwable error) { // the application's classes may lack others, too
      writeError(error, NO_RECORD);
    }
  }

  private int command() throws IOException {
    try {
      return in.readByte();
    } catch (EOFException end) {
      return NO_RECORD;
    }
  }

  private void withDefaults() {
    settings.putIfAbsent(StreamsConfig.APPLICATION_ID_CONFIG, "hindstream-prove");
    settings.putIfAbsent(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
    settings.putIfAbsent(EMIT_INTERVAL, "0"); // the driver's clock stands still
    settings.put("statestore.cache.max.bytes", "0");
    settings.put("cache.max.bytes.buffering", "0");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath());
  }

  private void run(List<Input> inputs) throws IOException {
    int at = NO_RECORD;
    try {
      Topology topology = topology();
      Set<String> sinks = sinks(topology.describe());
      long now = inputs.isEmpty() ? 0 : Math.max(0, inputs.get(0).timestamp);
      try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(now))) {
        Map<String, TestInputTopic<byte[], byte[]>> topics = new HashMap<>();
        Map<String, TestOutputTopic<byte[], byte[]>> outputs = new HashMap<>();
        for (Input input : inputs) {
          at++;
          topics.computeIfAbsent(input.topic, topic -> input(driver, topic)).pipeInput(input.record());
          if (input.timestamp > now) { // the wall clock shows what it would if each record came at its timestamp
            driver.advanceWallClockTime(Duration.ofMillis(input.timestamp - now));
            now = input.timestamp;
          }
          writeOutputs(driver, sinks, outputs, at);
        }
        at = NO_RECORD;
        out.writeByte(DONE);
        out.writeDouble(dropped(driver));
      }
    } catch (Throwable error) {
      writeError(error, at);
    }
  }

  private static TestInputTopic<byte[], byte[]> input(TopologyTestDriver driver, String topic) {
    return driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer());
  }

  private void writeOutputs(
      TopologyTestDriver driver,
      Set<String> sinks,
      Map<String, TestOutputTopic<byte[], byte[]>> outputs,
      int cause)
      throws IOException {
    for (String topic : driver.producedTopicNames()) {
      if (!isSink(topic, sinks)) {
        continue;
      }
      TestOutputTopic<byte[], byte[]> output =
          outputs.computeIfAbsent(
              topic,
              name -> driver.createOutputTopic(name, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
      while (!output.isEmpty()) {
        TestRecord<byte[], byte[]> record = output.readRecord();
        out.writeByte(RECORD);
        writeText(topic);
        out.writeInt(cause);
        out.writeLong(record.timestamp());
        writeBytes(record.key());
        writeBytes(record.value());
        Header[] headers = record.headers().toArray();
        out.writeInt(headers.length);
        for (Header header : headers) {
          writeText(header.key());
          writeBytes(header.value());
        }
      }
    }
  }

  /** Not a topic of the application's own: a changelog, or what is read again behind a repartition. */
  private boolean isSink(String topic, Set<String> sinks) {
    String own = settings.getProperty(StreamsConfig.APPLICATION_ID_CONFIG) + "-";
    return sinks.contains(topic) || !topic.startsWith(own);
  }

  private static double dropped(TopologyTestDriver driver) {
    return driver.metrics().entrySet().stream()
        .filter(metric -> metric.getKey().name().equals("dropped-records-total"))
        .map(metric -> metric.getValue().metricValue())
        .filter(Number.class::isInstance)
        .mapToDouble(value -> ((Number) value).doubleValue())
        .sum();
  }

  private static Set<String> sources(TopologyDescription described) {
    Set<String> topics = new TreeSet<>();
    for (TopologyDescription.Subtopology part : described.subtopologies()) {
      for (TopologyDescription.Node node : part.nodes()) {
        if (node instanceof TopologyDescription.Source) {
          TopologyDescription.Source source = (TopologyDescription.Source) node;
          if (source.topicSet() != null) {
            topics.addAll(source.topicSet());
          } else {
            topics.add("/" + source.topicPattern());
          }
        }
      }
    }
    for (TopologyDescription.GlobalStore store : described.globalStores()) {
      topics.addAll(store.source().topicSet());
    }
    return topics;
  }

  private static Set<String> sinks(TopologyDescription described) {
    Set<String> topics = new TreeSet<>();
    for (TopologyDescription.Subtopology part : described.subtopologies()) {
      for (TopologyDescription.Node node : part.nodes()) {
        if (node instanceof TopologyDescription.Sink) {
          String topic = ((TopologyDescription.Sink) node).topic();
          topics.add(topic == null ? "" : topic); // empty: chosen record by record
        }
      }
    }
    return topics;
  }

  /** Of each processor its name, the class that makes it, and what that knows of windows and the like; by tabs. */
  private static Set<String> suppliers(Topology topology) {
    Set<String> found = new TreeSet<>();
    try {
      Object builder = field(topology, Topology.class, "internalTopologyBuilder");
      Map<?, ?> factories = (Map<?, ?>) field(builder, builder.getClass(), "nodeFactories");
      for (Map.Entry<?, ?> node : factories.entrySet()) {
        Object supplier = field(node.getValue(), node.getValue().getClass(), "supplier");
        for (Object inner = supplier; inner != null; inner = field(inner, inner.getClass(), "delegate")) {
          supplier = inner;
        }
        if (supplier != null) {
          found.add(node.getKey() + "\t" + supplier.getClass().getSimpleName() + "\t" + known(supplier));
        }
      }
    } catch (ReflectiveOperationException | RuntimeException notOfThisVersion) {
      return found; // it is a help for people, and nothing rests on it
    }
    return found;
  }

  private static String known(Object supplier) throws ReflectiveOperationException {
    List<String> parts = new ArrayList<>();
    for (Class<?> type = supplier.getClass(); type != null && type != Object.class; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers())) {
          continue;
        }
        field.setAccessible(true);
        Object value = field.get(supplier);
        String name = value == null ? "" : value.getClass().getSimpleName();
        if (value instanceof Boolean || name.endsWith("Windows") || name.startsWith("Suppressed")
            || name.endsWith("SuppressedInternal")
            || (value instanceof Long && field.getName().matches(".*Ms|retentionPeriod"))) {
          parts.add(field.getName() + "=" + value);
        }
      }
    }
    return String.join("; ", parts);
  }

  /** Of an object, if its class or one above has such a field. */
  private static Object field(Object of, Class<?> type, String name) throws ReflectiveOperationException {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      for (Field field : at.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field.get(of);
        }
      }
    }
    return null;
  }

  // The topology

  private Topology topology() throws Throwable {
    String[] parts = reference.split("::", 2);
    Class<?> type = Class.forName(parts[0]);
    if (parts.length == 2) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(parts[1])) {
          field.setAccessible(true);
          Object holder = Modifier.isStatic(field.getModifiers()) ? null : instance(type);
          return topologyOf(field.get(holder), null);
        }
      }
      return called(type, parts[1]);
    }
    if (Supplier.class.isAssignableFrom(type)) {
      return topologyOf(instance(type), null);
    }
    throw new NotATopology("name the method behind ::, such as " + reference + "::build");
  }

  private Topology called(Class<?> type, String name) throws Throwable {
    List<Method> named = new ArrayList<>();
    for (Class<?> at = type; at != null && at != Object.class; at = at.getSuperclass()) {
      for (Method method : at.getDeclaredMethods()) {
        if (method.getName().equals(name) && !method.isBridge() && !method.isSynthetic()) {
          named.add(method);
        }
      }
    }
    if (named.isEmpty()) {
      throw new NotATopology(type.getName() + " has no method " + name + "; it has " + methods(type));
    }
    Method method =
        named.stream()
            .filter(one -> Arrays.stream(one.getParameterTypes()).allMatch(TopologyRunner::isKnown))
            .max(Comparator.comparingInt(Method::getParameterCount))
            .orElseThrow(
                () ->
                    new NotATopology(
                        named.get(0).toGenericString()
                            + " takes what nobody here can give; given are StreamsBuilder, Properties, Map and"
                            + " StreamsConfig: write a method that calls it"));
    method.setAccessible(true);
    StreamsBuilder builder = new StreamsBuilder();
    Object[] arguments = Arrays.stream(method.getParameterTypes()).map(of -> argument(of, builder)).toArray();
    boolean takesBuilder = Arrays.asList(method.getParameterTypes()).contains(StreamsBuilder.class);
    try {
      Object holder = Modifier.isStatic(method.getModifiers()) ? null : instance(type);
      return topologyOf(method.invoke(holder, arguments), takesBuilder ? builder : null);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private static boolean isKnown(Class<?> parameter) {
    return parameter == StreamsBuilder.class
        || parameter == Properties.class
        || parameter == Map.class
        || parameter == StreamsConfig.class;
  }

  private Object argument(Class<?> parameter, StreamsBuilder builder) {
    if (parameter == StreamsBuilder.class) {
      return builder;
    }
    return parameter == StreamsConfig.class ? new StreamsConfig(settings) : settings;
  }

  private Topology topologyOf(Object given, StreamsBuilder builder) {
    Object found = given;
    while (found instanceof Supplier) {
      found = ((Supplier<?>) found).get();
    }
    if (found instanceof Topology) {
      return (Topology) found;
    }
    if (found instanceof StreamsBuilder) {
      return ((StreamsBuilder) found).build(settings);
    }
    if (builder != null) { // it gives one of its streams, or nothing
      return builder.build(settings);
    }
    throw new NotATopology(
        reference + " gives " + (found == null ? "null" : found.getClass().getName()) + ", which is no Topology");
  }

  /** That of a Kotlin or Scala object, else a new one. */
  private static Object instance(Class<?> type) throws Throwable {
    for (String name : Arrays.asList("INSTANCE", "MODULE$")) {
      try {
        Field field = type.getDeclaredField(name);
        if (Modifier.isStatic(field.getModifiers()) && type.isAssignableFrom(field.getType())) {
          return field.get(null);
        }
      } catch (NoSuchFieldException none) {
        continue;
      }
    }
    try {
      var constructor = type.getDeclaredConstructor();
      constructor.setAccessible(true);
      return constructor.newInstance();
    } catch (NoSuchMethodException none) {
      throw new NotATopology(
          type.getName() + " has no constructor without parameters: write a static method that makes one");
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private static String methods(Class<?> type) {
    Set<String> names = new TreeSet<>();
    for (Method method : type.getDeclaredMethods()) {
      if (!method.isSynthetic()) {
        names.add(method.getName());
      }
    }
    return names.isEmpty() ? "none" : String.join(", ", names);
  }

  /** What is named is no topology. */
  private static final class NotATopology extends RuntimeException {
    private static final long serialVersionUID = 1;

    NotATopology(String what) {
      super(what);
    }
  }

  // The streams

  private static final class Input {
    final String topic;
    final long timestamp;
    final byte[] key;
    final byte[] value;
    final RecordHeaders headers;

    Input(String topic, long timestamp, byte[] key, byte[] value, RecordHeaders headers) {
      this.topic = topic;
      this.timestamp = timestamp;
      this.key = key;
      this.value = value;
      this.headers = headers;
    }

    TestRecord<byte[], byte[]> record() {
      return new TestRecord<>(key, value, headers, Long.valueOf(timestamp));
    }
  }

  private List<Input> readInputs() throws IOException {
    String[] topics = new String[in.readInt()];
    for (int number = 0; number < topics.length; number++) {
      topics[number] = new String(readBytes(), StandardCharsets.UTF_8);
    }
    int count = in.readInt();
    List<Input> inputs = new ArrayList<>(count);
    for (int number = 0; number < count; number++) {
      String topic = topics[in.readInt()];
      long timestamp = in.readLong();
      byte[] key = readBytes();
      byte[] value = readBytes();
      RecordHeaders headers = new RecordHeaders();
      for (int left = in.readInt(); left > 0; left--) {
        headers.add(new String(readBytes(), StandardCharsets.UTF_8), readBytes());
      }
      inputs.add(new Input(topic, timestamp, key, value, headers));
    }
    return inputs;
  }

  private byte[] readBytes() throws IOException {
    int length = in.readInt();
    if (length < 0) {
      return null;
    }
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  private void writeBytes(byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) {
      out.write(bytes);
    }
  }

  private void writeText(String text) throws IOException {
    writeBytes(text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  private void writeTexts(Set<String> texts) throws IOException {
    out.writeInt(texts.size());
    for (String text : texts) {
      writeText(text);
    }
  }

  /** The record at which it happened, the innermost error, and the line of the application where it was thrown. */
  private void writeError(Throwable error, int at) throws IOException {
    error.printStackTrace(); // into the log
    Throwable cause = error;
    while (cause.getCause() != null && cause.getCause() != cause) {
      cause = cause.getCause();
    }
    String place = "";
    for (StackTraceElement frame : cause.getStackTrace()) {
      if (NOT_OF_THE_USER.stream().noneMatch(frame.getClassName()::startsWith)) {
        place = frame.toString();
        break;
      }
    }
    out.writeByte(FAILED);
    out.writeInt(at);
    writeText(cause.getClass().getName());
    writeText(cause.getMessage());
    writeText(place);
  }
}
