"""Arrays, columns, times and windowed keys in memory, and the loops over them that all share.

Begin with `row_format` (values as bytes) or `hashing`; most others are one loop each.
"""
