"""Aggregation by sliding windows (Kafka's ``KStreamSlidingWindowAggregate``, KIP-450).

Begin with `operator`. The store is that of time windows.
"""
