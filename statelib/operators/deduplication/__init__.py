"""Deduplication by key, by key and id, by id over all partitions, and ``distinct()`` (KIP-655).

Begin with `operator`.
"""
