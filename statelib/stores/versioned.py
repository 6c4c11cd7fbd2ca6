"""The versioned key-value store of KIP-889: several versions of a key, found by time.

A version is valid from its timestamp (inclusive) to the timestamp of the key's next version (exclusive); a tombstone is
a version too. The latest version of each key lives in the family ``<name>.latest`` and never expires; older versions live
in ``<name>.segments``, in the segment of the time at which they ended, and expire segment by segment.

Point access (KIP-889, KIP-960, KIP-968)::

    store = VersionedKeyValueStore(backend, "rates", history_retention_ms=86_400_000)
    store.put(b"EUR", b"1.08", 1_000)                    # -> VALID_TO_UNDEFINED: nothing later
    store.get(b"EUR", as_of=1_500)                       # -> VersionedRecord(b"1.08", 1000)

Batch access, over the same bytes::

    versions = store.load(keys, from_ms)                 # flat arrays: what a compiled kernel walks
    ...                                                  # the kernel inserts versions and answers look-ups
    store.store(changed_keys, changed_versions, stream_time, write)

**The rule for a put**, which a kernel over a `VersionSet` must follow (``ts`` is the new version's timestamp):

1. ``ts < stream_time - history_retention_ms``: refused; nothing moves. Else ``stream_time = max(stream_time, ts)``.
2. A version at exactly ``ts`` is replaced, with one exception: a tombstone that hits the key's latest version while that
   is a value with ``remembered`` false removes the version and leaves nothing.
3. Else the version is inserted in its place, a tombstone even if the version before it is one.
4. ``remembered`` (one flag a key, of the latest version, only looked at while that is a value):
   ``semantics="kip"``: always true. ``"kafka-4.3"``: a value put after all others sets it to whether the version before it
   is a value; a value that replaces a latest tombstone sets it; a version inserted right before the latest sets it;
   nothing else changes it.

A look-up ``as_of < stream_time - history_retention_ms`` sees only the latest version, and only if that is a value whose
timestamp is <= ``as_of``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.metrics import NodeMetrics
    from statelib.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch

VALID_TO_UNDEFINED = -1
"""What put gives when the new version is the key's latest (Kafka: ``PUT_RETURN_CODE_VALID_TO_UNDEFINED``)."""

NOT_PUT = -9223372036854775808
"""What put gives when it is refused (Kafka: ``PUT_RETURN_CODE_NOT_PUT``)."""


@dataclass(frozen=True, slots=True)
class VersionSet:
    """The versions of n keys as flat arrays; those of key ``i`` are rows ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes:
        offsets: int64[n + 1].
        valid_from: int64[m], milliseconds, ascending and unique within a key. A version is valid until the next one's
            ``valid_from``; the last one without end.
        is_tombstone: bool[m].
        values: binary[m]; null exactly where ``is_tombstone``.
        remembered: bool[n]: see the module's docstring, rule 4. False for a key without versions, or whose last one is
            a tombstone.
    """

    offsets: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    is_tombstone: NDArray[np.bool_]
    values: pa.Array
    remembered: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.remembered)


class VersionedKeyValueStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        history_retention_ms: How long older versions can be asked for, and how late a version may be put.
        segment_interval_ms: Width of a segment; default: ``default_segment_interval_ms``.
        semantics: See `Semantics`.
        metrics: Where refused puts are counted, as ``dropped-records``.
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        *,
        history_retention_ms: int,
        segment_interval_ms: int | None = None,
        semantics: Semantics = "kip",
        metrics: NodeMetrics | None = None,
    ) -> None:
        self.stream_time = NO_TIMESTAMP

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``."""
        return f"{name}.latest", f"{name}.segments"

    def load(self, keys: Sequence[bytes], from_ms: NDArray[np.int64] | None = None) -> VersionSet:
        """The versions of ``keys`` that matter for what is asked or put at ``from_ms`` or later.

        The store remembers what it has handed out, until the next `store`: a key is loaded once, and then changed by
        one kernel only; to reach further back than its ``from_ms``, `store` and load it again.

        Args:
            keys: Serialised keys, each once.
            from_ms: int64[n]: for each key the smallest time at which it will be asked for or put before the next
                `store`. None: anything within retention, now and later.

        Returns:
            For each key, in the same order, all versions valid at or after its ``from_ms``; older ones may be there
            or not. A key without versions has none.
        """
        raise NotImplementedError

    def store(self, keys: Sequence[bytes], versions: VersionSet, stream_time: int, write: WriteBatch) -> None:
        """Adds to ``write`` what makes the stored versions of ``keys`` those of ``versions``; forgets what was loaded.

        Versions older than those that `load` gave stay as they are. Segments that ``stream_time`` has expired are
        dropped as a whole. Nothing is visible before the backend has carried out ``write``, which must come before
        any other use of the store.

        Args:
            keys: The keys that changed, each once, each loaded since the last `store`.
            versions: Their versions, in that order.
            stream_time: The store's clock after all accepted puts (`stream_time` if there was none).
            write: The batch that also carries the task's position.
        """
        raise NotImplementedError
