"""Compares two jobs, each at a commit: what they have written, and what they dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.comparison.compare import EXAMPLES
from statelib.comparison.fields import Rules
from statelib.comparison.ledgers import compare_ledgers
from statelib.comparison.sinks import compare_sinks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.comparison.ledgers import LedgerDifferences
    from statelib.comparison.matches import Resources, Way
    from statelib.comparison.sinks import JobCommit, SinkDifferences
    from statelib.storage import Storage

_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """What was found of two jobs.

    Attributes:
        sinks: Of their sinks.
        ledgers: Of what they dropped. It tells why sinks differ, and is no difference by itself.
    """

    sinks: SinkDifferences
    ledgers: LedgerDifferences

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
        """Whether both have the same results."""
        return self.sinks.is_empty


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
) -> JobDifferences:
    """Compares two jobs; see `compare_sinks` for arguments and errors."""
    found = compare_sinks(warehouse, a, b, resources, sinks=sinks, way=way, rules=rules, examples=examples)
    return JobDifferences(found, compare_ledgers(warehouse, found.a, found.b))
