package hindstream.benchmarks;

import static hindstream.benchmarks.Works.ANSWER;

import hindstream.benchmarks.TopicFile.Reader;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * Queries of Nexmark whose keys stay the same, as topologies of one sub-topology each. Answers are changes of tables, or
 * records, with their columns in order ({@link Row}).
 */
final class Nexmark {
  private static final String BIDS = "bid";
  private static final String AUCTIONS = "auction";
  private static final String SIDE_INPUT = "side_input";
  private static final Serde<Long> KEY = Serdes.Long();
  private static final Serde<byte[]> ROW = Serdes.ByteArray();
  private static final Duration DAY = Duration.ofDays(1);
  private static final Duration GRACE = Duration.ofSeconds(4);
  private static final BigDecimal EUROS = new BigDecimal("0.908");
  private static final BigDecimal LEAST = new BigDecimal(1_000_000);
  private static final BigDecimal LARGEST = new BigDecimal(50_000_000);

  private Nexmark() {}

  /** Whether a work is one of these. */
  static boolean has(String work) {
    return work.startsWith("q");
  }

  /** The topics that are read by time; of equal times the first one's records come first. */
  static List<String> topics(String query) {
    return query.equals("q9") || query.equals("q20") ? List.of(AUCTIONS, BIDS) : List.of(BIDS);
  }

  static Topology topology(String query, Properties settings) {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<Long, Bid> bids = builder.stream(BIDS, Consumed.with(KEY, Bid.SERDE));
    switch (query) {
      case "q0" ->
          write(bids.mapValues(b -> Row.of(b.auction(), b.bidder(), b.price(), b.dateTime(), b.extra())));
      case "q2" -> write(bids.filter((key, b) -> key % 123 == 0).mapValues(b -> Row.of(b.auction(), b.price())));
      case "q9" -> winning(builder, bids);
      case "q13" ->
          write(
              bids.join(
                  builder.globalTable(SIDE_INPUT, Consumed.with(KEY, ROW)),
                  (key, b) -> key % 10_000,
                  (b, row) -> withText(row, b.auction(), b.bidder(), b.price(), b.dateTime())));
      case "q14" -> write(bids.mapValues(Nexmark::calculated).filter((key, row) -> row != null));
      case "q17" -> statistics(bids);
      case "q20" -> expanded(builder, bids);
      case "q22" ->
          write(
              bids.mapValues(
                  b -> {
                    String[] parts = b.url().split("/");
                    return Row.of(b.auction(), b.bidder(), b.price(), b.channel(), parts[3], parts[4], parts[5]);
                  }));
      default -> throw new IllegalArgumentException("no such query: " + query);
    }
    return builder.build(settings);
  }

  /** Global tables are complete before the first record. */
  static void fill(String query, TopologyTestDriver driver, Path input, int partitions) throws IOException {
    if (!query.equals("q13")) {
      return;
    }
    TestInputTopic<byte[], byte[]> topic =
        driver.createInputTopic(SIDE_INPUT, new ByteArraySerializer(), new ByteArraySerializer());
    for (int partition = 0; partition < partitions; partition++) {
      try (Reader rows = new Reader(input.resolve(SIDE_INPUT + "-" + partition))) {
        for (; !rows.ended(); rows.next()) {
          topic.pipeInput(rows.key(), rows.value(), rows.timestampMs());
        }
      }
    }
  }

  private static void write(KStream<Long, byte[]> rows) {
    rows.to(ANSWER, Produced.with(KEY, ROW));
  }

  private static byte[] withText(byte[] text, long... numbers) {
    return ByteBuffer.allocate(numbers.length * Long.BYTES + text.length)
        .put(Row.of(Arrays.stream(numbers).boxed().toArray()))
        .put(text)
        .array();
  }

  private static byte[] calculated(Bid bid) {
    BigDecimal price = EUROS.multiply(BigDecimal.valueOf(bid.price()));
    if (price.compareTo(LEAST) <= 0 || price.compareTo(LARGEST) >= 0) {
      return null;
    }
    int hour = LocalDateTime.ofInstant(Instant.ofEpochMilli(bid.dateTime()), ZoneOffset.UTC).getHour();
    String time = hour >= 8 && hour <= 18 ? "dayTime" : hour <= 6 || hour >= 20 ? "nightTime" : "otherTime";
    long letters = bid.extra().chars().filter(letter -> letter == 'c').count();
    return Row.of(
        bid.auction(), bid.bidder(), price.toPlainString(), time, bid.dateTime(), bid.extra(), letters);
  }

  private static void winning(StreamsBuilder builder, KStream<Long, Bid> bids) {
    KTable<Long, Auction> auctions =
        builder.table(AUCTIONS, Consumed.with(KEY, Auction.SERDE), Materialized.with(KEY, Auction.SERDE));
    KTable<Long, Bid> highest =
        bids.join(
                auctions,
                (bid, auction) -> bid.dateTime() <= auction.expires() ? bid : null,
                Joined.with(KEY, Bid.SERDE, Auction.SERDE))
            .filter((key, bid) -> bid != null)
            .groupByKey(Grouped.with(KEY, Bid.SERDE))
            .reduce((best, bid) -> bid.price() > best.price() ? bid : best, Materialized.with(KEY, Bid.SERDE));
    write(
        auctions
            .join(
                highest,
                (a, b) ->
                    Row.of(
                        a.id(), a.itemName(), a.description(), a.initialBid(), a.reserve(), a.dateTime(), a.expires(),
                        a.seller(), a.category(), a.extra(), b.auction(), b.bidder(), b.price(), b.dateTime(),
                        b.extra()))
            .toStream());
  }

  private static void statistics(KStream<Long, Bid> bids) {
    bids.groupByKey(Grouped.with(KEY, Bid.SERDE))
        .windowedBy(TimeWindows.ofSizeAndGrace(DAY, GRACE))
        .aggregate(
            () -> Statistics.NONE,
            (auction, bid, statistics) -> statistics.plus(bid.price()),
            Materialized.with(KEY, Statistics.SERDE))
        .toStream()
        .map(
            (window, all) ->
                KeyValue.pair(
                    window,
                    Row.of(
                        window.key(),
                        window.window().startTime().toString().substring(0, 10),
                        all.bids(), all.rank1(), all.rank2(), all.rank3(), all.least(), all.largest(),
                        (double) all.sum() / all.bids(),
                        all.sum())))
        .to(ANSWER, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(Long.class, DAY.toMillis()), ROW));
  }

  private static void expanded(StreamsBuilder builder, KStream<Long, Bid> bids) {
    KStream<Long, Auction> auctions =
        builder.stream(AUCTIONS, Consumed.with(KEY, Auction.SERDE)).filter((key, a) -> a.category() == 10);
    write(
        bids.join(
            auctions,
            (b, a) ->
                Row.of(
                    b.auction(), b.bidder(), b.price(), b.channel(), b.url(), b.dateTime(), b.extra(), a.itemName(),
                    a.description(), a.initialBid(), a.reserve(), a.dateTime(), a.expires(), a.seller(), a.category(),
                    a.extra()),
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(1), GRACE),
            StreamJoined.with(KEY, Bid.SERDE, Auction.SERDE)));
  }
}
