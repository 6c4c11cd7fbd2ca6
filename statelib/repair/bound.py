"""The bound of a repair: keys that may change. It is looked at before anything is published."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from statelib.columns.windowed_type import is_windowed_struct
from statelib.commits.standing import standing_commit
from statelib.commits.versions.sink_history import sink_history, topics_aside
from statelib.comparison.compare import compare
from statelib.comparison.sides import sides_of
from statelib.comparison.sinks import default_way
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.json import readable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from statelib.comparison.matches import Resources
    from statelib.storage import Storage

_SHOWN = 3


def check_bound(
    warehouse: Storage,
    job: str,
    fork: str,
    keys_of: Callable[[str, pa.DataType], Sequence[Any]],
    resources: Resources,
) -> None:
    """Makes sure that a repair would change some keys alone.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        fork: The fork that is to repair it.
        keys_of: The keys that may change of a sink, given its topic and the type of its keys. Of a key that is a
            struct some fields do: of windowed keys the key without its window.
        resources: What the comparison may use.

    Raises:
        ConfigurationError: Others would change, too.
    """
    head, made = standing_commit(warehouse, job), standing_commit(warehouse, fork)
    aside = topics_aside(warehouse, job)
    before = sink_history(warehouse, job, head.commit)
    after = sink_history(warehouse, fork, made.commit)
    others: list[str] = []
    for sink in sorted((before.keys() | after.keys()) - aside):
        sides = sides_of(warehouse, (sink, before.get(sink, ())), (sink, after.get(sink, ())))
        found = OtherKeys(keys_of(sink, sides[0].key))
        compare(*sides, default_way(warehouse, job, head.fingerprint, sink), resources, taker=found)
        if found.keys:
            shown = sorted(found.keys)[:_SHOWN]
            more = f" and {len(found.keys) - _SHOWN} more" if len(found.keys) > _SHOWN else ""
            others.append(f"in {sink} {counted(found.keys.total(), 'difference')} of {', '.join(shown)}{more}")
    if others:
        step = "name these keys, too; or repair without --keys"
        raise ConfigurationError(f"other keys would change: {'; '.join(others)}", job=job, next_step=step)


class OtherKeys:
    """Counts the differences of keys that may not change; see `statelib.comparison.difference.DifferingRowsTaker`.

    Attributes:
        keys: How many there are of each, by the key as text; of windowed keys by the key without its window.

    Args:
        wanted: The keys that may change.
    """

    def __init__(self, wanted: Sequence[Any]) -> None:
        self._wanted = wanted
        self.keys: Counter[str] = Counter()

    def take(self, a: pa.Table | None, b: pa.Table | None) -> None:
        """Rows as they were, and as they should be: both have the same keys."""
        rows = a if a is not None else b
        if rows is None:
            return
        column = rows.column("key")
        is_windowed = is_windowed_struct(column.type)
        for key in column.to_pylist():
            if not any(_is_of(key, wanted) for wanted in self._wanted):
                plain = key["key"] if is_windowed else key
                self.keys[plain if isinstance(plain, str) else readable_json(plain)] += 1


def _is_of(key: Any, wanted: Any) -> bool:
    if isinstance(key, dict) and isinstance(wanted, dict):
        return bool(wanted) and all(key.get(field) == value for field, value in wanted.items())
    return bool(key == wanted)
