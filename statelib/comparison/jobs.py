"""Compares two jobs, each at a commit: what they have written, and what they dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from statelib.comparison.compare import EXAMPLES
from statelib.comparison.fields import Rules
from statelib.comparison.ledgers import compare_ledgers
from statelib.comparison.sinks import compare_sinks
from statelib.comparison.stores import compare_stores, store_columns
from statelib.comparison.times import ALL_TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.comparison.ledgers import LedgerDifferences
    from statelib.comparison.matches import Resources, Way
    from statelib.comparison.sinks import JobCommit, SinkDifferences
    from statelib.comparison.stores import StoreDifferences
    from statelib.comparison.times import Interval
    from statelib.storage import Storage

_NO_RULES = Rules()


class _Common(TypedDict):
    rules: Rules
    examples: int
    within: Interval


@dataclass(frozen=True, slots=True)
class StoresAsked:
    """Which stores are compared.

    Attributes:
        state_dir: A local folder for fetched state.
        names: See `compare_stores`; none: all.
    """

    state_dir: Path
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """What was found of two jobs.

    Attributes:
        sinks: Of their sinks.
        ledgers: Of what they dropped. It tells why sinks differ, and is no difference by itself.
        stores: Of their stores; None: they were not compared.
        within: Rows of which time were compared.
        split_ms: The time for which sinks tell how many differences are of it or later; None: they do not.
    """

    sinks: SinkDifferences
    ledgers: LedgerDifferences
    stores: StoreDifferences | None = None
    within: Interval = ALL_TIMES
    split_ms: int | None = None

    @property
    def a(self) -> JobCommit:
        """The one, with its commit."""
        return self.sinks.a

    @property
    def b(self) -> JobCommit:
        """The other one."""
        return self.sinks.b

    @property
    def is_empty(self) -> bool:
        """Whether both have the same results, and the same stores if these were compared."""
        return self.sinks.is_empty and (self.stores is None or self.stores.is_empty)


def compare_jobs(
    warehouse: Storage,
    a: JobCommit,
    b: JobCommit,
    resources: Resources,
    *,
    sinks: Sequence[str] = (),
    way: Way | None = None,
    rules: Rules = _NO_RULES,
    examples: int = EXAMPLES,
    within: Interval = ALL_TIMES,
    stores: StoresAsked | None = None,
    split_ms: int | None = None,
) -> JobDifferences:
    """Compares two jobs.

    Args:
        warehouse: See `compare_sinks`, as of all that follow.
        a: One job.
        b: The other one.
        resources: What the comparison may use.
        sinks: Which sinks.
        way: How sinks are compared.
        rules: What counts as equal.
        examples: How many rows are shown of each kind.
        within: Rows of another time are left out. Ledgers count all.
        stores: Which stores are compared too; None: none.
        split_ms: See `statelib.comparison.compare.compare`; of sinks alone.

    Raises:
        ConfigurationError: See `compare_sinks` and `compare_stores`.
        InputError: See `compare_sinks`.
    """
    common: _Common = {"rules": rules, "examples": examples, "within": within}
    columns = () if stores is None else store_columns(warehouse, a, b, stores.state_dir, stores.names)
    found = compare_sinks(
        warehouse, a, b, resources, sinks=sinks, way=way, split_ms=split_ms, columns=columns, **common
    )
    of_stores = None
    if stores is not None:
        of_stores = compare_stores(
            warehouse,
            found.a,
            found.b,
            replace(resources, matcher=None),
            stores.state_dir,
            stores=stores.names,
            **common,
        )
    return JobDifferences(found, compare_ledgers(warehouse, found.a, found.b), of_stores, within, split_ms)
