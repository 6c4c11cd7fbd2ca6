"""A topology tried in a test: real archives and stores, without Spark (Kafka's ``TopologyTestDriver``).

Begin with `driver`.
"""
