"""Stores made anew: migrated by KIP-889's procedure (`migrate`), or rebuilt from their changelogs (`rebuild`)."""
