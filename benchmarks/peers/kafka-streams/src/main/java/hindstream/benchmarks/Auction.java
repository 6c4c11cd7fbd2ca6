package hindstream.benchmarks;

import org.apache.kafka.common.serialization.Serde;

/** An auction of Nexmark. */
record Auction(
    long id,
    String itemName,
    String description,
    long initialBid,
    long reserve,
    long dateTime,
    long expires,
    long seller,
    long category,
    String extra) {
  static final Serde<Auction> SERDE =
      Row.serde(
          row ->
              new Auction(
                  row.number(),
                  row.text(),
                  row.text(),
                  row.number(),
                  row.number(),
                  row.number(),
                  row.number(),
                  row.number(),
                  row.number(),
                  row.text()),
          auction ->
              Row.of(
                  auction.id,
                  auction.itemName,
                  auction.description,
                  auction.initialBid,
                  auction.reserve,
                  auction.dateTime,
                  auction.expires,
                  auction.seller,
                  auction.category,
                  auction.extra));
}
