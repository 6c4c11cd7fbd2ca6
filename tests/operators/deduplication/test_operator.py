"""Deduplication against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.windowed_type import KeyWindows
from statelib.errors.kinds import ConfigurationError
from statelib.operators.deduplication import operator as deduplicate
from statelib.operators.deduplication.operator import DeduplicateSpec, Kind
from statelib.operators.mappers.mapping import mapper
from statelib.records.batch import NO_OFFSET
from statelib.records.key_column import WindowedKeys, Windows
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from tests.operators.task import Record, Task
from tests.reference.deduplicate import Deduplication

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.stores.backend import Backend

KINDS: list[Kind] = ["by_key", "by_key_value", "by_id"]
VALUE = pa.struct([("id", pa.string()), ("n", pa.int64())])


def spec(kind: Kind, interval_ms: int) -> DeduplicateSpec:
    return DeduplicateSpec(kind, None if kind == "by_key" else mapper("id"), interval_ms, "dedup")


def task(kind: Kind, interval_ms: int, **options: Any) -> Task:
    return Task(spec(kind, interval_ms), pa.string(), [VALUE], **options)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Disordered times, few keys and ids, nulls, redelivered records, records that pass the operator by."""
    base = draw(st.sampled_from([0, 1_700_000_000_000]))
    names = st.sampled_from([None, "a", "b", "ab", ""])
    records: list[Record] = []
    now = base + 20
    for offset in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from([0, 0, 1, 1, 5, 30]))
        if records and draw(st.integers(0, 9)) == 0:
            records.append(draw(st.sampled_from(records)))
            continue
        timestamp = max(0, now - draw(st.sampled_from([0, 0, 0, 1, 5, 10, 11, 25])))
        value = draw(st.one_of(st.none(), st.fixed_dictionaries({"id": names, "n": st.just(offset)})))
        parent = draw(st.sampled_from([0, 0, 0, 0, None]))
        place = draw(st.sampled_from([offset, offset, offset - 1, NO_OFFSET]))
        records.append(Record(draw(names), value, timestamp, place, parent, draw(st.integers(0, 1))))
    return records


def model(kind: Kind, interval_ms: int, records: list[Record]) -> list[int]:
    """Rows that are forwarded."""
    deduplication = Deduplication(interval_ms)
    forwarded = []
    for row, record in enumerate(records):
        deduplication.advance(record.timestamp)
        id_ = record.value["id"] if isinstance(record.value, dict) else None
        parts = {"by_key": (record.key,), "by_key_value": (record.key, id_), "by_id": (id_,)}[kind]
        offset = None if record.offset == NO_OFFSET else (record.source, record.offset)
        if record.parent is not None and deduplication.forwards(
            None if None in parts else parts, record.timestamp, offset
        ):
            forwarded.append(row)
    return forwarded


@pytest.mark.parametrize("kind", KINDS)
@given(records=histories(), interval_ms=st.sampled_from([0, 1, 10, 60]), cuts=st.lists(st.integers(1, 39)))
def test_the_models_answer_in_every_cut(kind: Kind, records: list[Record], interval_ms: int, cuts: list[int]) -> None:
    expected = model(kind, interval_ms, records)
    contents = []
    for where, flush_every, forget_from in [
        ([], 0, 1 << 16), (cuts, 0, 1), (cuts, 1, 2), (range(40), 1, 1), (range(40), 3, 1), (range(40), 5, 4),
    ]:  # fmt: skip
        run = task(kind, interval_ms)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deduplicate, "_FORGET_FROM", forget_from)
            patch.setattr(deduplicate, "_FORGET_FACTOR", 1)
            results = run.run(records, list(where), flush_every=flush_every)
        assert np.concatenate([result.sequence for result in results]).tolist() == expected
        kept = [value for result in results for value in result.value.to_pylist()]
        assert kept == [records[row].value for row in expected]
        assert run.metrics.unaccounted == 0
        assert run.metrics.records_out == len(expected)
        contents.append((run.content(), run.metrics.counters))
    assert contents[1:] == contents[:-1]


@pytest.mark.parametrize("kind", KINDS)
@given(
    records=histories(),
    interval_ms=st.sampled_from([0, 1, 10, 60]),
    cuts=st.lists(st.integers(1, 39)),
    most_spilled=st.integers(0, 3),
    fewest_spilled=st.integers(1, 4),
    spill_every=st.integers(1, 3),
    flush_every=st.sampled_from([0, 0, 5, 7]),
)
def test_what_is_spilled_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    kind: Kind,
    records: list[Record],
    interval_ms: int,
    cuts: list[int],
    most_spilled: int,
    fewest_spilled: int,
    spill_every: int,
    flush_every: int,
) -> None:
    """Answers, state and counters, and no file is left."""
    outcomes = []
    folder = tmp_path_factory.mktemp("spilled")
    for spilling in ({}, {"spill_every": spill_every, "folder": folder}):
        run = task(kind, interval_ms)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deduplicate, "_MOST_SPILLED", most_spilled)
            patch.setattr(deduplicate, "_FEWEST_SPILLED", fewest_spilled)
            results = run.run(records, cuts, flush_every=flush_every, **spilling)
        sequence = np.concatenate([result.sequence for result in results]).tolist()
        assert sequence == model(kind, interval_ms, records)
        outcomes.append((run.content(), run.metrics))
    assert outcomes[0] == outcomes[1]
    assert list(folder.iterdir()) == []


def test_what_is_spilled_is_on_disk_until_it_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplicate, "_FEWEST_SPILLED", 1)
    run = task("by_id", 100)

    def process(ids: range, time: int) -> int:
        batch = run.process([Record("k", {"id": f"id-{i}", "n": i}, time, time + i) for i in ids])
        return len(batch.sequence)

    assert process(range(1_000), 0) == 1_000
    in_memory = run.operator.memory_bytes()
    run.spill(tmp_path)
    assert run.operator.memory_bytes() < in_memory / 2
    assert run.content() == {"dedup.entries": [], "dedup.segments": []}
    assert process(range(500, 1_500), 90) == 500
    run.spill(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert process(range(1_500), 101) == 1_000  # all but those that were new at 90
    run.spill(tmp_path)
    assert process(range(1), 250) == 1
    run.spill(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    run.flush()
    assert list(tmp_path.iterdir()) == []
    assert len(run.content()["dedup.entries"]) == 1


@given(records=histories(), interval_ms=st.sampled_from([0, 10, 60]))
def test_the_store_keeps_what_may_still_matter(records: list[Record], interval_ms: int) -> None:
    run = task("by_key", interval_ms)
    run.run(records, range(0, 40, 7), flush_every=1)
    content = run.content()
    width = max(1, interval_ms // 2)
    times = {key: int.from_bytes(value[1:9], "big", signed=True) for key, value in content["dedup.entries"]}
    segments = [int.from_bytes(key[:8], "big", signed=True) for key in times]
    assert segments == [time // width for time in times.values()]
    assert len({key[8:] for key in times}) == len(times)
    assert all(segment >= (run.stream_time - interval_ms) // width for segment in segments)
    assert content["dedup.segments"] == [
        (segment.to_bytes(8, "big", signed=True), segments.count(segment).to_bytes(8, "big"))
        for segment in sorted(set(segments))
    ]


def test_accounts() -> None:
    run = task("by_key_value", 10)
    rows = [("k", "i", 0), ("k", "i", 5), ("k", None, 5), (None, "i", 5), ("k", "j", 6), ("k", "i", 30)]
    records = [Record(key, {"id": id_, "n": 0}, at, offset) for offset, (key, id_, at) in enumerate(rows)]
    run.run(records, [3], flush_every=1)
    assert run.metrics.accounts == {"forwarded": 3, "duplicate": 1, "null-key": 2}
    assert run.metrics.counters == {"expired-entries": 2}


def test_key_and_id_do_not_run_together() -> None:
    rows = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc")]
    records = [Record(key, {"id": id_, "n": 0}, 0, offset) for offset, (key, id_) in enumerate(rows)]
    (result,) = task("by_key_value", 10).run(records)
    assert len(result) == 4


def test_merged_topics_have_their_own_offsets() -> None:
    """The same id at the same offset of two topics is a duplicate, not the same record once more."""
    records = [Record("k", None, 5, 7, source=0), Record("k", None, 5, 7, source=1), Record("k", None, 5, 7, source=0)]
    (result,) = task("by_key", 10).run(records)
    assert result.sequence.tolist() == [0, 2]


def test_what_format_1_forwarded_is_known() -> None:
    backend, write = MemoryBackend(), WriteBatch()
    write.put("dedup.entries", b"a", struct.pack(">Bqqhi", 1, 3, 7, 0, 0))
    write.put("dedup.index", struct.pack(">q", 3) + b"a", b"")
    backend.write(write)
    (result,) = task("by_key", 10, backend=backend).run([Record(key, None, 9, 8 + row) for row, key in enumerate("ab")])
    assert result.sequence.tolist() == [1]


@pytest.mark.parametrize("stored", [3, 3_000])
def test_a_large_batch_finds_what_is_stored(tmp_path: Path, stored: int) -> None:
    """Over RocksDB, with few and with many stored ids, so by reading all of them and by asking for some."""
    with_rocksdb: Backend = RocksDbBackend(tmp_path / "db")
    run = task("by_id", 1_000_000, backend=with_rocksdb)
    run.run([Record("k", {"id": f"i{n}", "n": n}, n, n) for n in range(stored)])
    run.restart()
    again = [Record("k", {"id": f"i{n}", "n": n}, n, 10_000 + n) for n in range(2, 100)]
    results = run.run(again, [1, 50])
    assert [len(result) for result in results] == ([0, 49, 48] if stored == 3 else [0, 0, 0])
    with_rocksdb.close()


def test_reading_all_that_is_stored_keeps_what_is_newer() -> None:
    run = task("by_key", 10)
    run.run([Record(key, None, 0, row) for row, key in enumerate("abc")])
    run.restart()
    batches = [[Record("a", None, 100, 3)], [Record(key, None, 101, 4 + row) for row, key in enumerate("axyz")]]
    assert [len(run.process(batch)) for batch in batches] == [1, 3]


@pytest.mark.parametrize("kind", ["by_key", "by_key_value"])
def test_a_changed_key_gets_its_code_here(kind: Kind) -> None:
    run = task(kind, 10)
    records = [Record(key, {"id": "i", "n": at}, at, at) for at, key in enumerate(["a", "b", "a", None, "b"])]
    batch = replace(run.input_of(records, 0), key_code=None)
    result = run.operator.process([batch], run.uptake_of(records))
    assert result.sequence.tolist() == [0, 1, 3]


@pytest.mark.parametrize("kind", ["by_key", "by_key_value"])
def test_a_window_is_part_of_the_key(kind: Kind) -> None:
    run = task(kind, 10)
    records = [Record("a", {"id": "i", "n": at}, at, at) for at in range(4)]
    batch = run.input_of(records, 0)
    windows = Windows(np.array([0, 10, 0, 10]), np.array([10, 20, 10, 20]))
    keys = WindowedKeys(batch.keys, windows, KeyWindows("time", 10))
    result = run.operator.process([replace(batch, keys=keys, key_code=None)], run.uptake_of(records))
    assert result.sequence.tolist() == [0, 1]
    assert result.windows is not None
    assert result.windows.start.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("kind", "of", "interval_ms"),
    [("by_key", "id", 1), ("by_id", None, 1), ("by_key_value", None, 1), ("by_key", None, -1)],
)
def test_impossible_specifications(kind: Kind, of: str | None, interval_ms: int) -> None:
    with pytest.raises(ConfigurationError):
        DeduplicateSpec(kind, None if of is None else mapper(of), interval_ms, "dedup")


def test_the_fingerprint_covers_the_parameters() -> None:
    described = [json.dumps(dict(spec(kind, interval).describe())) for kind in KINDS for interval in (1, 2)]
    assert len(set(described)) == 6


class _FirstLetter:
    """A serde that tells ids apart by their first letter only."""

    arrow_type = pa.string()

    def serialize(self, values: pa.Array) -> pa.Array:
        return pc.utf8_slice_codeunits(values, 0, 1).cast(pa.binary())

    def describe(self) -> dict[str, object]:
        return {"serde": "first letter"}


@pytest.mark.parametrize("kind", ["by_key", "by_key_value", "by_id"])
def test_ids_are_compared_in_the_bytes_of_their_serde(kind: Kind) -> None:
    by = None if kind == "by_key" else mapper("id")
    by_letter = DeduplicateSpec(kind, by, 100, "s", _FirstLetter())  # type: ignore[arg-type]
    rows = [("k", "abc"), ("k", "axy"), ("k", "b"), ("m", "b")]
    run = Task(by_letter, pa.string(), [pa.struct([("id", pa.string())])])
    kept = run.run([Record(key, {"id": name}, 1, offset) for offset, (key, name) in enumerate(rows)])
    expected = {"by_key": [0, 3], "by_key_value": [0, 2, 3], "by_id": [0, 2]}[kind]
    assert [int(sequence) for batch in kept for sequence in batch.sequence] == expected
