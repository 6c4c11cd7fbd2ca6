"""Joins of two tables by key (Kafka's ``KTableKTableJoin``).

Begin with `operator`.
"""
