package hindstream.testbed;

import static org.apache.kafka.common.serialization.Serdes.String;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.AggregationWithHeaders;
import org.apache.kafka.streams.state.SessionStoreWithHeaders;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.TimestampedWindowStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;

/**
 * Keeps values with headers, in a store of each kind that has them: topic "events" (strings) is kept, and of the value
 * "?" what is kept for its key and time goes to "answers", with the headers that are kept.
 *
 * <p>Headers are "by", the value's first character, and "none", which is null.
 */
final class Kept {
  private static final long MINUTE_MS = 60_000;
  private static final Duration HOUR = Duration.ofHours(1);

  private Kept() {}

  static void define(StreamsBuilder builder, Settings settings) {
    builder.addStateStore(
        Stores.timestampedKeyValueStoreWithHeadersBuilder(
            Stores.persistentTimestampedKeyValueStoreWithHeaders("latest"), String(), String()));
    builder.addStateStore(
        Stores.timestampedWindowStoreWithHeadersBuilder(
            Stores.persistentTimestampedWindowStoreWithHeaders("minutes", HOUR, Duration.ofMinutes(1), false),
            String(),
            String()));
    builder.addStateStore(
        Stores.sessionStoreWithHeadersBuilder(
            Stores.persistentSessionStoreWithHeaders("visits", HOUR), String(), String()));
    builder.stream(settings.topic("events"), Consumed.with(String(), String()).withName("events"))
        .process(Keeper::new, Named.as("keeper"), "latest", "minutes", "visits")
        .to(settings.topic("answers"), Produced.with(String(), String()).withName("answers"));
  }

  private static final class Keeper implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;
    private TimestampedKeyValueStoreWithHeaders<String, String> latest;
    private TimestampedWindowStoreWithHeaders<String, String> minutes;
    private SessionStoreWithHeaders<String, String> visits;

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
      latest = context.getStateStore("latest");
      minutes = context.getStateStore("minutes");
      visits = context.getStateStore("visits");
    }

    @Override
    public void process(Record<String, String> record) {
      String value = record.value();
      long time = record.timestamp();
      long minute = time - time % MINUTE_MS;
      Windowed<String> visit = new Windowed<>(record.key(), new SessionWindow(minute, minute));
      if (!value.equals("?")) {
        Headers headers = new RecordHeaders();
        headers.add("by", value.substring(0, 1).getBytes(StandardCharsets.UTF_8));
        headers.add("none", null);
        ValueTimestampHeaders<String> kept = ValueTimestampHeaders.make(value, time, headers);
        latest.put(record.key(), kept);
        minutes.put(record.key(), kept, minute);
        visits.put(visit, AggregationWithHeaders.make(value, headers));
        return;
      }
      answer(record, "latest", latest.get(record.key()));
      answer(record, "minute", minutes.fetch(record.key(), minute));
      AggregationWithHeaders<String> visited = visits.fetchSession(record.key(), minute, minute);
      answer(record, "visit", visited == null ? null : ValueTimestampHeaders.make(visited.aggregation(), time, visited.headers()));
    }

    private void answer(Record<String, String> asked, String store, ValueTimestampHeaders<String> found) {
      if (found != null) {
        context.forward(
            asked
                .withValue(store + ": " + found.value())
                .withTimestamp(found.timestamp())
                .withHeaders(found.headers()));
      }
    }
  }
}
