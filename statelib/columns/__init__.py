"""Arrays and columns in memory, below everything that knows what they mean.

Begin with `row_format` (values as bytes) or `hashing`; most others are one loop each.
"""
