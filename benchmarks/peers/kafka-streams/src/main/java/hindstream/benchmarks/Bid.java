package hindstream.benchmarks;

import org.apache.kafka.common.serialization.Serde;

/** A bid of Nexmark. */
record Bid(long auction, long bidder, long price, String channel, String url, long dateTime, String extra) {
  static final Serde<Bid> SERDE =
      Row.serde(
          row ->
              new Bid(row.number(), row.number(), row.number(), row.text(), row.text(), row.number(), row.text()),
          bid -> Row.of(bid.auction, bid.bidder, bid.price, bid.channel, bid.url, bid.dateTime, bid.extra));
}
