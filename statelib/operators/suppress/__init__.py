"""Suppress: holds back a table's updates, so that only the last of several is forwarded (KIP-328).

Updates wait in a buffer, and final results of windows where their aggregation has them (`closing_windows`).

Begin with `definition`, then `operator`, then `buffer`.
"""
