"""Frames of Spark's: one that becomes a topic (`archive_frame`), and state as one (`state_source`)."""
