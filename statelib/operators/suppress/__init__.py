"""Suppress: holds back a table's updates, so that only the last of several is forwarded (KIP-328).

Begin with `definition`, then `operator`, then `buffer`.
"""
