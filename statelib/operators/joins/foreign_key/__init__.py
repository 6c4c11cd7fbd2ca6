"""Joins of two tables by a foreign key (KIP-213).

Begin with `subscribe`, then `operator`, then `resolve`.
"""
