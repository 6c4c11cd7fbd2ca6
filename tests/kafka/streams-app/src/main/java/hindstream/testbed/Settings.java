package hindstream.testbed;

import java.time.Duration;
import java.util.Properties;

/** What an application is told: Kafka's own settings, and those of its topology. */
final class Settings {
  private final Properties properties = new Properties();

  /** From arguments of the form name=value. */
  Settings(Iterable<String> arguments) {
    // For tests: every update is logged, and committed soon.
    properties.put("statestore.cache.max.bytes", "0");
    properties.put("commit.interval.ms", "100");
    // Changelogs of windows are deleted by age: the tests' records are of 1970.
    properties.put("windowstore.changelog.additional.retention.ms", "" + Duration.ofDays(200 * 365).toMillis());
    for (String argument : arguments) {
      int equals = argument.indexOf('=');
      properties.put(argument.substring(0, equals), argument.substring(equals + 1));
    }
  }

  Properties properties() {
    return properties;
  }

  String text(String name) {
    String text = properties.getProperty(name);
    if (text == null) {
      throw new IllegalArgumentException("the setting " + name + " is missing");
    }
    return text;
  }

  boolean has(String name) {
    return properties.containsKey(name);
  }

  /** A setting in milliseconds. */
  Duration duration(String name, Duration otherwise) {
    return has(name) ? Duration.ofMillis(Long.parseLong(text(name))) : otherwise;
  }

  /** The name of a topic: a test has its own by a prefix, or by topology.topic.NAME. */
  String topic(String name) {
    String prefix = properties.getProperty("topology.topic.prefix", "");
    return properties.getProperty("topology.topic." + name, prefix + name);
  }
}
