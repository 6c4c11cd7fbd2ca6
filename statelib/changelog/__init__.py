"""Changelogs of stores of any kind: stores rebuilt from them, and those of live applications, in either direction.

What is of one family of operators is in its room, in a module `changelog`. Begin with `export` (our stores in Kafka's
bytes), `import_records` (the way back) or `rebuild`.
"""

from statelib.changelog.export import export_changelog
from statelib.changelog.import_records import Imported, import_changelog
from statelib.changelog.rebuild import changelog_records, rebuild
from statelib.described.live_format import StoreFormat

__all__ = ["Imported", "StoreFormat", "changelog_records", "export_changelog", "import_changelog", "rebuild"]
