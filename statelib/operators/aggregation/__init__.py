"""Aggregations: of a stream's records by key, and of a table's changes (Kafka's ``KStreamAggregate``, ``KTableAggregate``).

Begin with `definition`, then `operator`.
"""
