"""Holds answers against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.works import Work


def by_key(answer: pa.Table) -> pa.Table:
    """The records of each key together, in the order in which they came."""
    numbered = answer.append_column("position", pa.array(range(len(answer)), pa.int64()))
    order = pc.sort_indices(numbered, [("key", "ascending"), ("position", "ascending")])
    return answer.take(order).combine_chunks()


def differences(work: Work, answer: pa.Table, expected: pa.Table, *, is_exact: bool) -> list[str]:
    """What is wrong with ``answer``, as sentences; none: nothing.

    Args:
        work: What was to be done.
        answer: Of a contestant.
        expected: Hindstream's, as `by_key` gives it.
        is_exact: Whether each record must be the same, and each key's records in the same order; else only the number
            of records and the sums of the work's totals.
    """
    found = []
    if len(answer) != len(expected):
        found.append(f"{len(answer):,} records instead of {len(expected):,}")
    for column in work.totals:
        sums = [pc.sum(table[column]).as_py() or 0 for table in (answer, expected)]
        if sums[0] != sums[1]:
            found.append(f"the sum of {column} is {sums[0]:,} instead of {sums[1]:,}")
    if is_exact and not found and not by_key(answer).equals(expected):
        found.append("the same number and sums, but other records, or another order")
    return found


def save(answer: pa.Table, path: Path) -> None:
    """Writes an answer as an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, answer.schema) as writer:
        writer.write_table(answer)


def load(path: Path) -> pa.Table:
    """What `save` has written."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
