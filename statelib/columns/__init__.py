"""Arrays and columns in memory, below everything that knows what they mean.

Begin with `statelib.columns.growing`.
"""
