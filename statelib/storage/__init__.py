"""Objects by path, on local disk, in memory or in an object store: everything but Delta logs.

Begin with `storage`.
"""

from statelib.storage.errors import ObjectNotFoundError, reason_without_secrets
from statelib.storage.objects import StoredObject
from statelib.storage.storage import Storage

__all__ = ["ObjectNotFoundError", "Storage", "StoredObject", "reason_without_secrets"]
