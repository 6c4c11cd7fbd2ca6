package hindstream.benchmarks;

/** The record with which an id was last forwarded. */
record Forwarded(long timestampMs, long offset) {}
