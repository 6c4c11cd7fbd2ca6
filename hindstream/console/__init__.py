"""What a person reads in a terminal: numbers, tables, progress.

Begin with `numbers`, which reports use as well.
"""
