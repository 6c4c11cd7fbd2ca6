"""Migrates a store: to versioned, back to plain, to another retention (KIP-889), or to another name.

Begin with `migrate`.
"""

from statelib.migration.audit import Comparison, compare_latest
from statelib.migration.contents import contents
from statelib.migration.migrate import copy_entries, is_rename, migrate_store, rename_stores

__all__ = ["Comparison", "compare_latest", "contents", "copy_entries", "is_rename", "migrate_store", "rename_stores"]
