"""Stores of a job made anew: migrated by KIP-889's procedure (`migrate`), or rebuilt of their changelogs (`rebuild`)."""
