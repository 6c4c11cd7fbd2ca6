"""Records in memory: batches of them, their keys, and rows that outlive a batch.

Begin with `batch`.
"""
