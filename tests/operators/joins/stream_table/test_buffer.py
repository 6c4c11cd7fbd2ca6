"""Records that wait for a join: in which order they leave, whatever the batches, flushes and restarts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import Joined, Materialized, Stores, StreamsBuilder, TopologyTestDriver
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.buffer_store import (
    JoinBufferStore,
    WaitingRow,
    decode,
    encode_place,
    encode_value,
)
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from tests.operators.chain import Chain, Record

RECORDS = st.lists(
    st.builds(Record, st.sampled_from([None, "", "a", "ab", "b"]), st.none() | st.integers(0, 9), st.integers(0, 40)),
    max_size=30,
)
Left = tuple[int, Any, Any, int]


def expected(grace: int, records: list[Record]) -> list[Left]:
    """A record at a time: (sequence, key, value, timestamp) of what leaves."""
    stream_time = -1
    waiting: list[tuple[int, bytes, int, Record]] = []
    left: list[Left] = []
    for i, record in enumerate(records):
        nothing_to_join = record.key is None or record.value is None
        if nothing_to_join or record.timestamp < stream_time - grace:
            left.append((i, record.key, record.value, record.timestamp))
            continue
        stream_time = max(stream_time, record.timestamp)
        waiting.append((record.timestamp, record.key.encode(), i, record))
        due = sorted(entry for entry in waiting if entry[0] <= stream_time - grace)
        waiting = [entry for entry in waiting if entry not in due]
        left += [(i, entry[3].key, entry[3].value, entry[0]) for entry in due]
    return left


@given(st.integers(0, 30), RECORDS, st.integers(1, 10), st.sampled_from(["nothing", "flush", "restart"]))
def test_records_leave_like_the_reference(grace: int, records: list[Record], size: int, between: str) -> None:
    chain = Chain([JoinBuffer("b", grace)], pa.int64())
    (rows,) = chain.run(records, size, between)
    assert [(row.sequence, row.key, row.value, row.timestamp) for row in rows] == expected(grace, records)
    chain.restart()  # checks the ledger
    assert chain.metrics[0].held_before == len(records) - len(rows)


@given(st.integers(0, 30), RECORDS, st.integers(1, 10), st.sampled_from(["nothing", "flush", "restart"]))
def test_sealed_everything_leaves_in_order_and_nothing_stays(
    grace: int, records: list[Record], size: int, between: str
) -> None:
    chain = Chain([JoinBuffer("b", grace)], pa.int64())
    (rows,) = chain.run(records, size, between)
    operator: Any = chain.operators[0]
    nothing = np.empty(0, np.int64)
    no_keys = KeyColumn(pa.array([], pa.string()))
    sealed = operator.seal([Batch(no_keys, nothing, pa.array([], pa.int64()), nothing, nothing)])
    assert len(rows) + len(sealed) == len(records)
    due = [(int(time), key.encode()) for time, key in zip(sealed.timestamp, sealed.key.to_pylist(), strict=True)]
    assert due == sorted(due)
    assert sealed.sequence.tolist() == [time + grace for time, _ in due]
    chain.restart()
    assert chain.metrics[0].held_before == 0


def test_the_bytes_of_an_entry() -> None:
    waiting = WaitingRow(258, 3, b"key", b"row")
    place = bytes.fromhex("0000000000000102 0000000000000003")
    value = bytes.fromhex("00000003") + b"keyrow"
    assert (encode_place(258, 3), encode_value(waiting)) == (place, value)
    assert decode(place, value, "b") == waiting


@pytest.mark.parametrize(("place", "value"), [(b"short", b"\0\0\0\0"), (bytes(16), b"\0"), (bytes(16), b"\0\0\0\7key")])
def test_damaged_entries_are_refused(place: bytes, value: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="buffer"):
        decode(place, value, "b")


def test_an_unknown_format_is_refused() -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    JoinBufferStore(backend, "b").store(-1, [], pa.schema([("value", pa.int64())]), write)
    backend.write(write)
    ((key, header),) = backend.scan("b")
    backend.write(WriteBatch([("b", key, b"\x09" + header[1:])]))
    with pytest.raises(ConfigurationError, match="format 9"):
        JoinBufferStore(backend, "b")


def test_a_record_meets_what_the_table_said_of_its_time_although_that_came_later(tmp_path: Any) -> None:
    builder = StreamsBuilder("app")
    store = Stores.persistent_versioned_key_value_store("rates", timedelta(minutes=1))
    rates = builder.table("rates", Materialized.as_(store))
    joined = Joined.as_("priced").with_grace_period(timedelta(seconds=10))
    builder.stream("sales").left_join(rates, {"sale": "left", "rate": "right"}, joined).to("priced-sales")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    rate_topic, sales = driver.create_input_topic("rates"), driver.create_input_topic("sales")
    priced = driver.create_output_topic("priced-sales")
    sales.pipe_input("EUR", "a", 20_000)
    assert priced.read_records_to_list() == []
    rate_topic.pipe_input("EUR", "1.10", 19_000)
    driver.replay()
    sales.pipe_input("EUR", "b", 30_000)
    assert [record.value for record in priced.read_records_to_list()] == [{"sale": "a", "rate": "1.10"}]


@pytest.mark.parametrize(("grace", "message"), [(61, r"60000 ms.*61000 ms.*at least the grace period")])
def test_a_history_shorter_than_the_grace_period_is_refused(grace: int, message: str) -> None:
    builder = StreamsBuilder("app")
    store = Stores.persistent_versioned_key_value_store("rates", timedelta(seconds=60))
    table = builder.table("rates", Materialized.as_(store))
    with pytest.raises(ConfigurationError, match=message):
        builder.stream("sales").join(table, "left", Joined().with_grace_period(timedelta(seconds=grace)))
