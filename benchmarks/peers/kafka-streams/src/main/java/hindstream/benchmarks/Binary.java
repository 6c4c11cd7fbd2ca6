package hindstream.benchmarks;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Compact binary forms of all values: big-endian int64s, then strings, each but the last with a length in front. */
final class Binary {
  private Binary() {}

  static Serde<Click> click() {
    return serde(
        click -> {
          byte[] id = click.id().getBytes(UTF_8);
          byte[] currency = click.currency().getBytes(UTF_8);
          return ByteBuffer.allocate(Long.BYTES + Integer.BYTES + id.length + currency.length)
              .putLong(click.amount())
              .putInt(id.length)
              .put(id)
              .put(currency)
              .array();
        },
        bytes -> {
          ByteBuffer fields = ByteBuffer.wrap(bytes);
          long amount = fields.getLong();
          int length = fields.getInt();
          int begin = fields.position();
          String id = new String(bytes, begin, length, UTF_8);
          return new Click(id, amount, new String(bytes, begin + length, bytes.length - begin - length, UTF_8));
        });
  }

  static Serde<Cost> cost() {
    return serde(
        cost -> {
          byte[] id = cost.id().getBytes(UTF_8);
          return ByteBuffer.allocate(Long.BYTES + id.length).putLong(cost.cost()).put(id).array();
        },
        bytes ->
            new Cost(
                new String(bytes, Long.BYTES, bytes.length - Long.BYTES, UTF_8), ByteBuffer.wrap(bytes).getLong()));
  }

  static Serde<Totals> totals() {
    return pair(totals -> totals.clicks(), totals -> totals.sum(), Totals::new);
  }

  static Serde<Forwarded> forwarded() {
    return pair(forwarded -> forwarded.timestampMs(), forwarded -> forwarded.offset(), Forwarded::new);
  }

  @FunctionalInterface
  private interface Pairing<T> {
    T of(long first, long second);
  }

  private static <T> Serde<T> pair(Function<T, Long> first, Function<T, Long> second, Pairing<T> pairing) {
    return serde(
        value -> ByteBuffer.allocate(2 * Long.BYTES).putLong(first.apply(value)).putLong(second.apply(value)).array(),
        bytes -> {
          ByteBuffer fields = ByteBuffer.wrap(bytes);
          return pairing.of(fields.getLong(), fields.getLong());
        });
  }

  private static <T> Serde<T> serde(Function<T, byte[]> write, Function<byte[], T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> value == null ? null : write.apply(value),
        (topic, bytes) -> bytes == null ? null : read.apply(bytes));
  }
}
