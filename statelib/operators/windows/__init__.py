"""Aggregation by time windows (Kafka's ``KStreamWindowAggregate``), and the window store.

Begin with `definition`, then `operator`.
"""
