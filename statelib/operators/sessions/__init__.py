"""Aggregation by sessions (Kafka's ``KStreamSessionWindowAggregate``), and the session store.

Begin with `operator`.
"""
