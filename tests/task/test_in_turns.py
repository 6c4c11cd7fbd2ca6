"""Processors that share stores see what the others put, record by record, however the input is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib import StreamsBuilder
from tests.operators.flow import Fed, Flow
from tests.operators.processors.examples import relays
from tests.reference.process import Relays

if TYPE_CHECKING:
    from statelib import Topology

STRING = pa.string()
TYPES = {"one": (STRING, STRING), "other": (STRING, STRING)}

records = st.lists(
    st.builds(
        Fed,
        st.sampled_from(["one", "other"]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", None]),
        st.integers(0, 60),
    ),
    max_size=20,
)


def topology() -> Topology:
    builder = StreamsBuilder("app")
    relays(builder.stream("one"), builder.stream("other"))
    return builder.build()


@given(records, st.lists(st.integers(0, 20), max_size=4), st.integers(0, 2))
def test_every_answer_is_the_models_whatever_the_batches(fed: list[Fed], cuts: list[int], flush_every: int) -> None:
    model = Relays((10, 15))
    for record in fed:
        model.take(other=record.topic == "other", key=record.key, value=record.value, timestamp=record.timestamp)
    flow = Flow(topology(), TYPES)
    out = flow.run(fed, cuts, flush_every=flush_every)
    found: dict[str, list[Any]] = {
        name: [tuple(row[1:]) for row in out.get(f"relayed-{name}", [])] for name in ("twice", "once", "anywhere")
    }
    assert found == model.out
    whole = Flow(topology(), TYPES)
    whole.run(fed)
    assert flow.content() == whole.content()
    processed = sum(metrics.accounts.get("processed", 0) for metrics in flow.by_node.values())
    assert processed == len(fed) + len(model.out["once"])
