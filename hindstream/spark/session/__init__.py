"""Spark's session, and the Java under it. Begin with `session`."""
