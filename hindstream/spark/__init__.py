"""The phases of a run on Spark, and frames of Spark's that become topics and show state."""
