package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.String;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Left join of two tables by a foreign key: topics "staff" ("department:name") and "departments" (strings) give "placed".
 *
 * <p>A value there is "department:name@department's".
 */
final class ForeignKey {
  private ForeignKey() {}

  static void define(StreamsBuilder builder, Settings settings) {
    KTable<String, String> staff = table(builder, settings, "staff");
    KTable<String, String> departments = table(builder, settings, "departments");
    staff
        .leftJoin(
            departments,
            person -> person.substring(0, person.indexOf(':')),
            (person, department) -> person + "@" + department,
            TableJoined.as("placed"))
        .toStream()
        .to(settings.topic("placed"), Produced.with(String(), String()).withName("placed-sink"));
  }

  private static KTable<String, String> table(StreamsBuilder builder, Settings settings, String name) {
    return builder.table(
        settings.topic(name),
        Consumed.with(String(), String()).withName(name),
        Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name + "-store")
            .withKeySerde(String())
            .withValueSerde(String()));
  }
}
