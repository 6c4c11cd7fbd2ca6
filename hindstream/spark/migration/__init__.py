"""Stores made anew: migrated by KIP-889's procedure, or rebuilt from their changelogs.

Begin with `migrate` or `rebuild`.
"""
