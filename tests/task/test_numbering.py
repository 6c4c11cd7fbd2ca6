"""Places of visits: where paths part and where they meet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statelib.records.batch import Batch, Uptake
from statelib.records.key_column import KeyColumn
from statelib.task.numbering import Numbering, Passing, in_task, met, parted
from statelib.topology.paths import LOOKED_INTO


def uptake(count: int, first: int = 10) -> Uptake:
    rows = np.arange(count)
    return Uptake(first, 100 + rows, rows.astype(np.int16), rows.astype(np.int32), 1_000 + rows)


def batch(values: str, sequence: list[int]) -> Batch:
    numbers = np.array(sequence, np.int64)
    value = pa.array(list(values), pa.string())
    return Batch(KeyColumn(value), None, value, np.zeros(len(numbers), np.int64), numbers)


def order(inputs: list[Passing]) -> str:
    """The values of all inputs in the order of their numbers."""
    rows = [(int(n), v) for one in inputs for n, v in zip(one.batch.sequence, one.batch.value.to_pylist(), strict=True)]
    return "".join(value for _, value in sorted(rows, key=lambda row: row[0]))


def on_way(passing: Passing, child: int, values: str) -> Passing:
    """What a child makes of it."""
    made = batch(values, passing.batch.sequence.tolist())
    return Passing(made, passing.numbering, child)


def test_results_of_a_record_take_all_paths_one_after_the_other() -> None:
    task = uptake(2)
    above = parted(Passing(batch("abc", [10, 10, 11]), Numbering(task)), task, 3)
    inputs = met([on_way(above, 1, "ABC"), on_way(above, 0, "xyz")], task, 9)
    assert order(inputs) == "xAyBzC"
    assert in_task(inputs[0]).sequence.tolist() == [10, 10, 11]


def test_what_a_node_puts_comes_before_what_its_children_do_with_it_and_behind_what_came_before() -> None:
    task = uptake(1)
    table = parted(Passing(batch("12", [10, 10]), Numbering(task)), task, 2)
    looked = Passing(table.batch, table.numbering, LOOKED_INTO)
    assert order(met([on_way(table, 0, "ab"), looked], task, 5)) == "1a2b"


def test_a_parting_below_a_parting() -> None:
    task = uptake(1)
    first = parted(Passing(batch("ab", [10, 10]), Numbering(task)), task, 1)
    repeated = Passing(batch("pqr", first.batch.sequence[[0, 0, 1]].tolist()), first.numbering, 0)
    second = parted(repeated, task, 2)
    inputs = met([on_way(first, 1, "AB"), on_way(second, 1, "PQR"), on_way(second, 0, "123")], task, 8)
    assert order(inputs) == "1P2QA3RB"


def test_several_results_of_one_visit_are_visits_one_by_one() -> None:
    task = uptake(1)
    above = parted(Passing(batch("a", [10]), Numbering(task)), task, 1)
    numbers = above.batch.sequence[[0, 0]].tolist()
    inputs = met([on_way(above, 1, "z"), Passing(batch("xy", numbers), above.numbering, 0)], task, 3)
    assert order(inputs) == "xyz"
    assert len(set(inputs[1].batch.sequence.tolist())) == 2


def test_the_uptake_has_a_row_for_each_visit_and_for_the_end_of_each_record() -> None:
    task = uptake(3)
    made = parted(Passing(batch("ab", [11, 11]), Numbering(task)), task, 1).numbering.uptake
    assert made.stream_time.tolist() == [100, 101, 101, 101, 102]
    assert made.offset.tolist() == [1_000, 1_001, 1_001, 1_001, 1_002]
    assert [made.end_of(row) for row in range(5)] == [0, 3, 3, 3, 4]
    assert task.end_of(2) == 2


def test_what_comes_at_the_end_of_a_record_comes_behind_all_its_visits() -> None:
    task = uptake(2)
    (called,) = met([Passing(batch("a", [10]), Numbering(task))], task, 1)
    end = called.numbering.uptake.end_of(0)
    forwarded = Passing(batch("ae", [0, end]), called.numbering)
    inputs = met(
        [forwarded, Passing(batch("b", [10]), Numbering(task)), Passing(batch("c", [11]), Numbering(task))], task, 4
    )
    assert order(inputs) == "abec"


def test_what_has_no_records_is_numbered_too() -> None:
    task = uptake(0)
    above = parted(Passing(batch("", []), Numbering(task)), task, 1)
    (one, _) = met([above, on_way(above, 0, "")], task, 2)
    assert len(one.batch) == len(one.numbering.uptake) == 0
