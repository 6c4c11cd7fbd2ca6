"""Mappers: what a user writes for a key, a value, a condition; the user's functions, and what is said where one fails.

Begin with `mapping`.
"""
