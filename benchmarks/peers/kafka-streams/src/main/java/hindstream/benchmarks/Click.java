package hindstream.benchmarks;

/** A click on an advertisement of the campaign that is its key. */
record Click(String id, long amount, String currency) {}
