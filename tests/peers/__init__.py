"""Kafka Streams' own tests: what they do with ``TopologyTestDriver`` is recorded in Java, and done here again.

Begin with `tracing`, which records, `recording`, which says what a recording has, and `replay`.
"""
