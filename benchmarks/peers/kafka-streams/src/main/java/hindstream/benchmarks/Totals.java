package hindstream.benchmarks;

/** Number of clicks in a window, and the sum of their amounts or costs. */
record Totals(long clicks, long sum) {
  static final Totals NONE = new Totals(0, 0);

  Totals plus(long amount) {
    return new Totals(clicks + 1, sum + amount);
  }
}
