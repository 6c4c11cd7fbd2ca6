"""Makes a store anew of what it holds: versioned, plain again, with another retention (KIP-889), or another name."""

from statelib.migration.audit import Comparison, compare_latest
from statelib.migration.contents import contents
from statelib.migration.migrate import is_rename, migrate_store, rename_stores

__all__ = ["Comparison", "compare_latest", "contents", "is_rename", "migrate_store", "rename_stores"]
