"""The arithmetic of an estimate, that more costs more, and what limits first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindstream.estimate.evidence import Evidence, StateAt, Written
from hindstream.estimate.flow import flow
from hindstream.estimate.prediction import predict
from hindstream.estimate.shape import Shape, ShapedNode
from statelib.metrics.node_metrics import NodeMetrics
from tests.hindstream.estimate.costs_of_one import NODES, SHAPE, calibration, history, resources


def passed(records_in: int, records_out: int, held: int = 0) -> NodeMetrics:
    return NodeMetrics(records_in=records_in, records_out=records_out, held_after=held)


def evidence(**changed) -> Evidence:
    """A run over 100,000 records, of which the filter left a tenth."""
    at = StateAt(100_000, 1_000, 0, {})
    values = {
        "origin": "runs",
        "runs": 1,
        "hosts": ("here",),
        "records": 100_000,
        "nodes": {"in": passed(100_000, 100_000), "few": passed(100_000, 10_000), "out": passed(10_000, 0)},
        "written": {"few": Written(10_000, 200_000)},
        "task_records": {f"0_{n}": 25_000 for n in range(4)},
        "tasks_run": 4,
        "seconds": {"read": 0.1, "process": 0.1, "write": 0.01},
        "states": (at, at),
    }
    return Evidence(**{**values, **changed})


def test_without_runs_every_record_passes_and_costs_what_the_calibration_says() -> None:
    told = predict(SHAPE, history(), calibration(), None, resources())
    assert [node.records for node in told.nodes] == [4_000_000] * 3
    assert dict(told.cpu_seconds_by_part) == pytest.approx(
        {"start": 10, "slices": 0.5, "read": 4, "process": 4, "write": 4, "checkpoint": 0, "audit": 0}
    )
    assert told.cpu_seconds == pytest.approx(22.5)
    assert told.seconds == pytest.approx(5 + 0.5 + 12 / 4)
    assert [output.records for output in told.outputs] == [4_000_000]


def test_runs_say_where_records_go_and_what_they_cost() -> None:
    told = predict(SHAPE, history(), calibration(), evidence(), resources())
    assert [node.records for node in told.nodes] == pytest.approx([4_000_000, 4_000_000, 400_000])
    assert told.cpu_seconds_by_part["write"] == pytest.approx(0.4)
    assert told.outputs[0].size_bytes == pytest.approx(400_000 * 20)
    slower = evidence(seconds={"read": 0.3, "process": 0.1, "write": 0.01})
    assert predict(SHAPE, history(), calibration(), slower, resources()).cpu_seconds_by_part["read"] == pytest.approx(
        12
    )


def test_records_that_come_back_in_a_circle_are_taken_up_as_often_as_in_the_runs() -> None:
    nodes = (
        ShapedNode("back", "repartition", "source", 0, topic="again"),
        ShapedNode("in", "source", "source", 0, topic="events"),
        ShapedNode("all", "merge", "operator", 0, ("back", "in")),
        ShapedNode("few", "filter", "operator", 0, ("all",)),
        ShapedNode("again", "repartition", "sink", 0, ("few",), topic="again"),
    )
    seen = {"back": passed(300, 300), "in": passed(100, 100), "all": passed(400, 400), "few": passed(400, 300),
            "again": passed(300, 0)}  # fmt: skip
    shape = Shape(nodes, {0: 4})
    told = flow(shape, history(1_000_000), evidence(nodes=seen))
    assert told["all"].records_in == pytest.approx(4_000_000, rel=1e-3)
    assert told["again"].records_in == pytest.approx(3_000_000, rel=1e-3)
    assert flow(shape, history(1_000_000), None)["all"].records_in == 2_000_000


def test_a_node_that_a_sample_has_timed_costs_that() -> None:
    timed = evidence(origin="sample", node_seconds={"few": 0.5})
    told = predict(SHAPE, history(), calibration(), timed, resources())
    assert told.nodes[1].record_seconds == pytest.approx(5e-6)


def test_runs_of_few_records_say_where_records_go_and_nothing_of_costs() -> None:
    few = evidence(records=1_000, seconds={"read": 100.0})
    told = predict(SHAPE, history(), calibration(), few, resources())
    assert told.cpu_seconds_by_part["read"] == pytest.approx(4)
    assert told.outputs[0].records == pytest.approx(400_000)


def test_what_is_held_back_counts_as_forwarded() -> None:
    nodes = {**evidence().nodes, "few": passed(100_000, 10_000, held=10_000)}
    told = predict(SHAPE, history(), calibration(), evidence(nodes=nodes), resources())
    assert told.nodes[2].records == pytest.approx(800_000)


def test_functions_that_are_called_for_each_record_cost_more() -> None:
    called = replace(SHAPE, nodes=(NODES[0], replace(NODES[1], calls=1), NODES[2]))
    told = predict(called, history(), calibration(), None, resources())
    assert told.nodes[1].record_seconds == pytest.approx(11e-6)


def test_an_operator_that_nobody_has_measured_costs_as_the_costliest() -> None:
    unknown = replace(SHAPE, nodes=(NODES[0], replace(NODES[1], kind="new"), NODES[2]))
    assert predict(unknown, history(), calibration(), None, resources()).nodes[1].record_seconds == 2e-6


def test_each_task_takes_up_a_global_table() -> None:
    every = replace(SHAPE, nodes=(replace(NODES[0], is_global=True), *NODES[1:]))
    assert predict(every, history(), calibration(), None, resources()).nodes[0].records == 16_000_000


def test_audits_cost_by_expectation_slice_and_record() -> None:
    told = predict(SHAPE, history(), calibration(), None, resources(checks={"few": 3}, slices=2))
    assert told.cpu_seconds_by_part["audit"] == pytest.approx(2 * 3 * 0.01 + 3 * 4_000_000 * 1e-7)


@pytest.mark.parametrize(
    ("limit", "skew", "changed", "records"),
    [
        ("start and slices", 0.25, {}, 1_000),
        ("start and slices", 0.25, {"slices": 10_000}, 4e9),
        ("one process", 0.25, {"engine": "local"}, 4e9),
        ("hot partition", 0.9, {}, 4e9),
        ("partitions", 0.25, {"cores": 8}, 4e9),
        ("cores", 0.25, {"cores": 2}, 4e9),
        ("cores", 0.4, {"cores": 2}, 4e9),
    ],
)
def test_what_limits_first(limit, skew, changed, records) -> None:
    assert predict(SHAPE, history(records, skew), calibration(), None, resources(**changed)).limit == limit


def test_state_beyond_the_budget_spills_and_costs_more() -> None:
    keyed = replace(SHAPE, nodes=(NODES[0], replace(NODES[1], keeps_state=True), NODES[2]))
    told = predict(keyed, history(), calibration(), None, resources(cores=2))
    small = predict(keyed, history(), calibration(), None, resources(cores=2, memory_budget_bytes=1 << 20))
    assert told.state_bytes == 4_000_000 * 30
    assert not told.spills
    assert (small.spills, small.limit) == (True, "memory")
    assert small.cpu_seconds_by_part["process"] > told.cpu_seconds_by_part["process"]
    assert small.peak_memory_bytes < told.peak_memory_bytes


def test_memory_is_that_of_the_tasks_that_run_at_a_time() -> None:
    told = predict(SHAPE, history(), calibration(), None, resources(cores=2))
    assert told.peak_memory_bytes == (500 + 2 * (100 + 50)) << 20
    local = predict(SHAPE, history(), calibration(), None, resources(engine="local"))
    assert local.peak_memory_bytes == 150 << 20


def test_what_a_task_takes_is_known_from_a_sample_and_not_from_runs() -> None:
    of_runs = predict(SHAPE, history(), calibration(), evidence(), resources(cores=2))
    assert of_runs.peak_memory_bytes == (500 + 2 * (100 + 50)) << 20
    sample = evidence(origin="sample", task_bytes=10 << 20, tasks_run=1)
    of_sample = predict(SHAPE, history(), calibration(), sample, resources(cores=2))
    assert (500 + 2 * (100 + 10)) << 20 <= of_sample.peak_memory_bytes < (500 + 2 * (100 + 20)) << 20


@settings(max_examples=200, deadline=None)
@given(
    records=st.floats(1, 1e11),
    more=st.floats(1, 1e3),
    cores=st.integers(1, 64),
    slices=st.integers(1, 1_000),
    skew=st.floats(0.25, 1),
    known=st.booleans(),
    engine=st.sampled_from(["spark", "local"]),
)
def test_more_records_never_cost_less_and_more_cores_never_take_longer(
    records, more, cores, slices, skew, known, engine
) -> None:
    told_by = evidence() if known else None
    keyed = replace(SHAPE, nodes=(NODES[0], replace(NODES[1], keeps_state=True), NODES[2]))

    def told(records, cores, slices):
        given = resources(cores=cores, slices=slices, engine=engine, checks={"few": 2})
        return predict(keyed, history(records, skew), calibration(), told_by, given)

    one, larger = told(records, cores, slices), told(records * more, cores, slices)
    for name in ("seconds", "cpu_seconds", "state_bytes", "peak_memory_bytes"):
        assert getattr(larger, name) >= getattr(one, name) * (1 - 1e-9), name
    assert told(records, 2 * cores, slices).seconds <= one.seconds * (1 + 1e-9)
    assert told(records, cores, 2 * slices).cpu_seconds >= one.cpu_seconds * (1 - 1e-9)
    assert one.cpu_seconds == pytest.approx(sum(one.cpu_seconds_by_part.values()))
