"""Makes the store of a table anew of what it holds: versioned, plain again, or with another retention (KIP-889)."""

from statelib.migration.audit import Comparison, compare_latest
from statelib.migration.contents import contents
from statelib.migration.migrate import migrate_store

__all__ = ["Comparison", "compare_latest", "contents", "migrate_store"]
