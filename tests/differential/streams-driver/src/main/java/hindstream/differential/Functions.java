package hindstream.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;

/** What programs compute; tests/differential/functions.py has the same. Values are strings or counts. */
final class Functions {
  private static Keys keys = Keys.STRING;

  private static final int LONGEST = 48;
  private static final long ENDLESS = 253_402_300_799_999L;

  private Functions() {}

  /** Makes functions and serdes give keys of a type from here on: programs run one at a time. */
  static void useKeys(Keys ofType) {
    keys = ofType;
  }

  /** Of what type keys are. */
  static Keys keys() {
    return keys;
  }

  static String text(Object value) {
    return value instanceof Bytes bytes ? HexFormat.of().formatHex(bytes.get()) : String.valueOf(value);
  }

  /** Long values are cut: what they end with is told by a checksum. */
  static String cut(String value) {
    if (value.length() <= LONGEST) {
      return value;
    }
    CRC32 crc = new CRC32();
    crc.update(value.getBytes(StandardCharsets.UTF_8));
    return String.format("%s#%08x", value.substring(0, 8), crc.getValue());
  }

  static int sum(Object value) {
    int sum = 0;
    for (byte letter : text(value).getBytes(StandardCharsets.UTF_8)) {
      sum += letter & 0xff;
    }
    return sum;
  }

  static Object suffixed(Object value, String suffix) {
    return value == null ? null : cut(text(value) + suffix);
  }

  /** Fails for a fourth of the values that are there. */
  static void failForSome(Object value) {
    if (passes(value, 4, 1)) {
      throw new IllegalArgumentException(text(value));
    }
  }

  /** What a function has made; the step may say that it fails for some. */
  static String checked(JsonNode step, String made) {
    if (step.has("fails")) {
      failForSome(made);
    }
    return made;
  }

  static String keyText(Object key) {
    return key instanceof Windowed<?> windowed
        ? text(windowed.key()) + "[" + windowed.window().start() + "," + end(windowed) + ")"
        : text(key);
  }

  /** Of a window; one without an end has that of the last time that Arrow's libraries show. */
  static long end(Windowed<?> windowed) {
    return Math.min(windowed.window().end(), ENDLESS);
  }

  static boolean passes(Object value, int modulus, int rest) {
    return value != null && sum(value) % modulus == rest;
  }

  static int number(Object value, int count) {
    return sum(value) % count;
  }

  static Object key(Object value, int shift) {
    return keys.all.get((sum(value) + shift) % keys.all.size());
  }

  /** The start of a window, made of a value. */
  static long start(Object value, long advance) {
    return sum(value) % 6 * advance;
  }

  static Object keyOrNone(Object value, int shift, int none) {
    return sum(value) % 4 == none ? null : key(value, shift);
  }

  static long extracted(String extractor, Object value, long timestamp, long partitionTime) {
    return switch (extractor) {
      case "bounded" -> partitionTime < 0 ? timestamp : Math.min(timestamp, partitionTime + 7);
      case "ascending" -> Math.max(timestamp, partitionTime + 1);
      default -> value == null || passes(value, 3, 0) ? partitionTime : timestamp;
    };
  }

  static List<Object> pieces(Object value, int most) {
    List<Object> pieces = new ArrayList<>();
    int count = value == null ? 0 : sum(value) % (most + 1);
    for (int number = 0; number < count; number++) {
      pieces.add(cut(text(value) + number));
    }
    return pieces;
  }

  static String joined(Object left, Object right) {
    return cut(text(left) + "|" + text(right));
  }

  static String added(Object aggregate, Object value) {
    return cut(text(aggregate) + "+" + text(value));
  }

  static String merged(Object one, Object other) {
    return cut(text(one) + "&" + text(other));
  }

  /** Counts of streams, one of them one more. */
  static String counted(Object counts, int stream) {
    String[] parts = text(counts).split(":");
    parts[stream] = String.valueOf(Long.parseLong(parts[stream]) + 1);
    return String.join(":", parts);
  }

  /** The counts of two sessions. */
  static String counted(Object counts, Object others) {
    String[] parts = text(counts).split(":");
    String[] more = text(others).split(":");
    for (int stream = 0; stream < parts.length; stream++) {
      parts[stream] = String.valueOf(Long.parseLong(parts[stream]) + Long.parseLong(more[stream]));
    }
    return String.join(":", parts);
  }

  static String taken(Object aggregate, Object value) {
    return cut(text(aggregate) + "-" + text(value));
  }
}
