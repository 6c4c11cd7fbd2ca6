"""Changelogs of stores: stores rebuilt from them, and their compaction."""

from statelib.changelog.rebuild import rebuild

__all__ = ["rebuild"]
