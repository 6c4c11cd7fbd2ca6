"""Joins of a stream with a table, as it is now or as it was then (KIP-889, KIP-923).

Begin with `operator` for versioned tables, `latest` for plain ones.
"""
