"""Joins of two streams within windows (Kafka's ``KStreamKStreamJoin``).

Begin with `definition`, then `operator`.
"""
