"""Spark's data frames: one that becomes a topic, and state as one.

Begin with `archive_frame` or `state_source`.
"""
