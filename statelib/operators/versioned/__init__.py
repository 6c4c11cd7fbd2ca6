"""Versioned stores: several versions of a key, found by time (KIP-889).

Begin with `store`.
"""
