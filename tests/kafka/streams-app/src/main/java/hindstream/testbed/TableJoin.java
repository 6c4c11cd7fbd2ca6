package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.String;

import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Left join of a stream with a table: topics "orders" and "prices" (strings) give "priced": "order@price".
 *
 * <p>The table is plain or versioned; all names are the same, so that the one can become the other. Settings:
 * topology.history.retention.ms (an hour), topology.join.grace.ms (none).
 */
final class TableJoin {
  private static final String STORE = "prices-store";

  private TableJoin() {}

  static void plain(StreamsBuilder builder, Settings settings) {
    define(builder, settings, Materialized.as(STORE));
  }

  static void versioned(StreamsBuilder builder, Settings settings) {
    Duration retention = settings.duration("topology.history.retention.ms", Duration.ofHours(1));
    define(builder, settings, Materialized.as(Stores.persistentVersionedKeyValueStore(STORE, retention)));
  }

  private static void define(
      StreamsBuilder builder,
      Settings settings,
      Materialized<String, String, KeyValueStore<Bytes, byte[]>> store) {
    KTable<String, String> prices =
        builder.table(
            settings.topic("prices"),
            Consumed.with(String(), String()).withName("prices"),
            store.withKeySerde(String()).withValueSerde(String()));
    KStream<String, String> orders =
        builder.stream(settings.topic("orders"), Consumed.with(String(), String()).withName("orders"));
    orders
        .leftJoin(
            prices,
            (order, price) -> order + "@" + price,
            Joined.<String, String, String>as("priced-join")
                .withKeySerde(String())
                .withValueSerde(String())
                .withOtherValueSerde(String())
                .withGracePeriod(settings.duration("topology.join.grace.ms", null)))
        .to(settings.topic("priced"), Produced.with(String(), String()).withName("priced"));
  }
}
