package hindstream.benchmarks;

import org.apache.kafka.common.serialization.Serde;

/** Of the bids for an auction on a day (q17 of Nexmark). */
record Statistics(long bids, long rank1, long rank2, long rank3, long least, long largest, long sum) {
  static final Statistics NONE = new Statistics(0, 0, 0, 0, Long.MAX_VALUE, 0, 0);
  static final Serde<Statistics> SERDE =
      Row.serde(
          row ->
              new Statistics(
                  row.number(), row.number(), row.number(), row.number(), row.number(), row.number(), row.number()),
          all -> Row.of(all.bids, all.rank1, all.rank2, all.rank3, all.least, all.largest, all.sum));

  Statistics plus(long price) {
    boolean isLow = price < 10_000;
    boolean isHigh = price >= 1_000_000;
    return new Statistics(
        bids + 1,
        rank1 + (isLow ? 1 : 0),
        rank2 + (isLow || isHigh ? 0 : 1),
        rank3 + (isHigh ? 1 : 0),
        Math.min(least, price),
        Math.max(largest, price),
        sum + price);
  }
}
