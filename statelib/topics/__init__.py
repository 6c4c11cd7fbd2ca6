"""Topic archives: Kafka's topics at rest as Delta tables, read in slices and appended to exactly once.

Begin with `archive`.
"""
