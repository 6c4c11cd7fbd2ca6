package hindstream.benchmarks;

/** What a campaign pays for a click. */
record Cost(String id, long cost) {}
