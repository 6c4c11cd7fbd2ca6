"""The ordered map under every store, in RocksDB or in memory: families of rows, headers, scans, what spills.

Begin with `backend`. The stores themselves are with their operators.
"""
