"""Changelogs of stores: stores rebuilt from them, and their compaction."""

from statelib.changelog.rebuild import changelog_records, rebuild

__all__ = ["changelog_records", "rebuild"]
