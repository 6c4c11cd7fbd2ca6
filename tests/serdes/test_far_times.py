"""Times that no topic can hold: what a source makes of them, whatever the bytes were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import Consumed, StreamsBuilder
from statelib.commits.layout import quarantine_topic
from statelib.errors.kinds import InputError
from statelib.serdes import serde_for
from statelib.serdes.avro.serde import AvroSerde
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.serdes import Serde

LONG_MAX = 2**63 - 1
MILLIS = AvroSerde('{"type": "record", "name": "R", "fields": [{"name": "at", "type": {"type": "long", "logicalType": '
                   '"timestamp-millis"}}]}')  # fmt: skip
STRUCT = pa.struct([("at", pa.timestamp("ms", "UTC"))])


def structs(number: int) -> pa.Array:
    at = pa.array([number], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    return pa.StructArray.from_arrays([at], fields=list(STRUCT))


@pytest.mark.parametrize("number", [LONG_MAX, 17 * 10**17, -LONG_MAX, 9_223_372_036_854_776])
@pytest.mark.parametrize(
    ("serde", "values"),
    [
        (MILLIS, structs),
        (serde_for(pa.timestamp("ms")), lambda number: pa.array([number], pa.int64()).cast(pa.timestamp("ms"))),
        (serde_for(pa.timestamp("s")), lambda number: pa.array([number], pa.int64()).cast(pa.timestamp("s"))),
    ],
    ids=["avro", "milliseconds", "seconds"],
)
def test_a_value_of_a_topic_of_bytes(tmp_path: Path, serde: Serde, values: Any, number: int) -> None:
    builder = StreamsBuilder("far")
    builder.stream("bytes", Consumed.with_(value_serde=serde)).to("out")
    job = Pipeline(tmp_path, builder.build())
    good, bad = (serde.serialize(values(one))[0].as_py() for one in (5, number))
    job.archive("bytes", [("k", good, 1), ("k", bad, 2)], (pa.string(), pa.binary()))
    with pytest.raises(InputError, match=r"cannot be used: undecodable value: the time .* is out of reach") as raised:
        job.run()
    assert {name: raised.value.place[name] for name in ("topic", "partition", "offset")} == {
        "topic": "bytes", "partition": 0, "offset": 1,
    }  # fmt: skip
    aside = Pipeline(tmp_path, builder.build(), on_bad_record="quarantine")
    aside.run()
    assert [row[1] for row in aside.output("out")] == [0]
    ((_, _, _, value, _),) = aside.output(quarantine_topic("job"))
    assert (value["offset"], value["value"]) == (1, bad)


def test_a_timestamp_of_protobuf_says_what_it_is() -> None:
    from google.protobuf.timestamp_pb2 import Timestamp as Message  # noqa: PLC0415

    from statelib.serdes.protobuf.kinds import Timestamp  # noqa: PLC0415

    kind = Timestamp(Message.DESCRIPTOR)
    with pytest.raises(ValueError, match="out of reach"):
        kind.array([Message(seconds=17 * 10**17)])
    assert kind.array([Message(seconds=17 * 10**11)]).cast(pa.int64()).to_pylist() == [17 * 10**17]
