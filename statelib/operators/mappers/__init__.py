"""Mappers: what a user writes for a key, a value, a condition; and the user's functions, with what is said where one fails.

Begin with `mapping`.
"""
