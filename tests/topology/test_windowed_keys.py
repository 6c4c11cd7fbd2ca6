"""What a topology says of stores under windowed keys is what they have when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import StreamsBuilder
from statelib.columns.schema_text import decode_schema
from statelib.columns.windowed_type import WindowedType
from statelib.commits.layout import Runs
from statelib.documents.plans import Plan
from statelib.documents.topologies import TopologyDescription
from statelib.topology.windowed_keys import stateful_under_windowed_keys
from tests.dsl.test_windowed_keys import counts
from tests.surface.records import TYPES
from tests.surface.topology import surface
from tests.surface.windowed import WINDOWS, in_one
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology


def described(folder: Path, topology: Topology) -> TopologyDescription:
    """The topology as a document."""
    pipeline = Pipeline(folder, topology)
    for topic in topology.source_topics:
        pipeline.archive(topic, [("a", {"id": "i", "amount": 1, "other": "a"}, 1)], TYPES)
    planned = pipeline.plan()
    assert isinstance(planned, Plan)
    found = Runs(pipeline.warehouse, "job").topology(planned.fingerprint)
    assert found is not None
    return found


@pytest.mark.parametrize("topology", [surface(), in_one(WINDOWS["sessions"])], ids=["surface", "behind windows"])
def test_what_is_said_without_types_is_what_the_types_say(tmp_path: Path, topology: Topology) -> None:
    typed: set[str] = set()
    for store in described(tmp_path, topology).stores:
        schema = decode_schema(store.arrow_schema)
        typed |= {store.node} if any(isinstance(field.type, WindowedType) for field in schema) else set()
    assert stateful_under_windowed_keys(topology.nodes) == typed


def test_the_fingerprint_tells_a_window_in_a_key_and_nothing_else() -> None:
    def fingerprints(*, stateful: bool) -> tuple[frozenset[str], str]:
        builder = StreamsBuilder("job")
        stream = counts(builder, "in")
        if stateful:
            stream.group_by_key().count().to_stream().to("out")
        else:
            stream.select_key("key").group_by_key().count().to_stream().to("out")
        topology = builder.build()
        return stateful_under_windowed_keys(topology.nodes), topology.fingerprint

    assert len(fingerprints(stateful=True)[0]) == 1
    assert fingerprints(stateful=False)[0] == frozenset()


def test_the_type_of_windowed_keys_is_written_down_and_read() -> None:
    for windows in WINDOWS.values():
        of = WindowedType(WindowedType(pa.string(), windows.of_keys), windows.of_keys)
        schema = pa.schema([("key", of)])
        again = pa.ipc.read_schema(schema.serialize()).field("key").type
        assert again == of
        assert hash(again) == hash(of)
        assert again.windows == windows.of_keys
