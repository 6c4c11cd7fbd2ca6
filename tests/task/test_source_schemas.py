"""Sources whose values change between two slices: the job goes on, and says what it does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import Materialized, StreamsBuilder, max_, sum_
from statelib.commits.layout import CommitLog
from statelib.documents.plans import Plan
from statelib.errors.kinds import ConfigurationError, InputError
from tests.surface.records import VALUE, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

OLD = pa.struct([("shop", pa.string()), ("amount", pa.int32())])
CHANGES = {
    "a field is new": pa.struct([*OLD, ("channel", pa.int64())]),
    "an integer becomes a double": pa.struct([("shop", pa.string()), ("amount", pa.float64())]),
    "an integer becomes a decimal": pa.struct([("shop", pa.string()), ("amount", pa.decimal128(14, 2))]),
    "numbers are wider": pa.struct([("shop", pa.string()), ("amount", pa.int64())]),
    "fields stand in another order": pa.struct([("amount", pa.int32()), ("shop", pa.string())]),
    "a field is left out by its writer": pa.struct([("shop", pa.string())]),
    "all of it": pa.struct([("new", pa.struct([("x", pa.bool_())])), ("amount", pa.int64()), ("shop", pa.string())]),
}


def totals(*, with_channel: bool = False, more: str | None = None) -> Topology:
    builder = StreamsBuilder("job")
    sales = builder.stream("sales")
    sales.to("copied")
    sales.group_by_key().aggregate({"amount": sum_("amount")}, Materialized.as_("sums")).to_stream().to("sums")
    latest = builder.table("sales", Materialized.as_("latest"))
    sales.join(latest, {"shop": "right.shop", "amount": "left.amount"}).to("joined")
    if more:
        sales.to(more)
    if with_channel:
        sales.group_by_key().aggregate({"channel": max_("channel")}, Materialized.as_("max")).to_stream().to("channels")
    return builder.build()


def rows(begin: int, end: int, *, amount: bool = True) -> list[tuple[Any, Any, int]]:
    return [
        (f"k{n % 3}", {"shop": f"s{n % 2}"} | ({"amount": n} if amount else {}), n * 1_000) for n in range(begin, end)
    ]


def outputs(job: Pipeline) -> list[Any]:
    return [job.output(topic) for topic in ("copied", "sums", "joined")]


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_a_job_goes_on_as_if_nothing_had_changed(tmp_path: Path, change: str) -> None:
    amount = "amount" in CHANGES[change].names
    changed, whole = Pipeline(tmp_path / "changed", totals()), Pipeline(tmp_path / "whole", totals())
    for job, later in ((changed, CHANGES[change]), (whole, OLD)):
        job.archive("sales", rows(0, 20), (pa.string(), OLD), partitions=2)
        job.run()
        job.archive("sales", rows(20, 40, amount=amount), (pa.string(), later), partitions=2)
        planned = job.plan()
        job.run()
        job.archive("sales", rows(40, 50), (pa.string(), OLD), partitions=2)
        job.run()
        assert isinstance(planned, Plan)
        is_seen = job is whole or change in {"fields stand in another order", "a field is left out by its writer"}
        assert bool(planned.unseen) is not is_seen
    assert outputs(changed) == outputs(whole)


def test_what_is_not_seen_is_said(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, totals())
    job.archive("sales", rows(0, 5), (pa.string(), OLD))
    job.run()
    job.archive("sales", rows(5, 9), (pa.string(), CHANGES["all of it"]))
    planned = job.plan()
    assert isinstance(planned, Plan)
    (said,) = planned.unseen
    assert said.startswith("the values of topic sales have changed; this job reads them with their former types: ")
    assert "value.amount was int32 and is int64" in said
    assert said.endswith("value.new (struct<x: bool>) is new")


def test_a_number_that_does_not_fit_ends_the_run_with_its_place(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, totals())
    job.archive("sales", rows(0, 5), (pa.string(), OLD))
    job.run()
    wide = [("k", {"shop": "s", "amount": 7}, 9_000), ("k", {"shop": "s", "amount": 1 << 40}, 9_001)]
    job.archive("sales", wide, (pa.string(), CHANGES["numbers are wider"]))
    with pytest.raises(InputError, match=r"value.amount is 1099511627776.*topic sales, partition 0, offset 6"):
        job.run()


def test_a_fraction_does_not_fit_the_integers_that_a_job_began_with(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, totals())
    job.archive("sales", rows(0, 5), (pa.string(), OLD))
    job.run()
    doubles = [("k", {"shop": "s", "amount": amount}, 9_000) for amount in (7.0, 7.5)]
    job.archive("sales", doubles, (pa.string(), CHANGES["an integer becomes a double"]))
    with pytest.raises(InputError, match=r"value.amount is 7.5, which is no int32.*topic sales, partition 0, offset 6"):
        job.run()


def test_a_field_that_is_gone_is_refused(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, totals())
    job.archive("sales", rows(0, 5), (pa.string(), OLD))
    job.run()
    head = CommitLog(job.warehouse, "job").head()
    assert head is not None
    (tmp_path / "warehouse/topics/sales").rename(tmp_path / "old")
    job.archive("sales", [("k", {"shop": "s"}, 1)] * 9, (pa.string(), pa.struct([("shop", pa.string())])))
    with pytest.raises(ConfigurationError, match=r"no longer that of commit 1: value.amount is gone \(job job"):
        job.plan()


def test_a_changed_topology_sees_the_new_field_where_the_state_allows_it(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, without_values())
    job.archive("sales", rows(0, 6), (pa.string(), OLD))
    job.run()
    wide = pa.struct([*OLD, ("channel", pa.int64())])
    job.archive("sales", [("k0", {"shop": "s", "amount": 1, "channel": 4}, 9_000)], (pa.string(), wide))
    job.topology = without_values(with_channel=True)
    planned = job.plan()
    assert isinstance(planned, Plan)
    assert planned.unseen == ()
    job.run()
    assert [value for _, _, _, value, _ in job.output("channels")] == [{"channel": 4}]
    assert job.output("sums")[-1][3] == {"amount": 0 + 3 + 1}


def without_values(*, with_channel: bool = False) -> Topology:
    """No store holds values of the topic as they are."""
    builder = StreamsBuilder("job")
    sales = builder.stream("sales")
    sales.group_by_key().aggregate({"amount": sum_("amount")}, Materialized.as_("sums")).to_stream().to("sums")
    if with_channel:
        sales.group_by_key().aggregate({"channel": max_("channel")}, Materialized.as_("max")).to_stream().to("channels")
    return builder.build()


@pytest.mark.parametrize("with_channel", [False, True])
def test_a_changed_topology_reads_as_before_where_the_state_has_values_of_the_topic(
    tmp_path: Path, with_channel: bool
) -> None:
    job = Pipeline(tmp_path, totals())
    job.archive("sales", rows(0, 6), (pa.string(), OLD))
    job.run()
    wide = pa.struct([*OLD, ("channel", pa.int64())])
    job.archive("sales", [("k0", {"shop": "s", "amount": 1, "channel": 4}, 9_000)], (pa.string(), wide))
    job.topology = totals(with_channel=with_channel, more="more")
    if with_channel:
        with pytest.raises(ConfigurationError, match=r"store latest: the types of its keys or values are others"):
            job.plan()
    else:
        job.run()
        assert [row[2:] for row in job.output("more")] == [("k0", {"shop": "s", "amount": 1}, 9_000)]


@pytest.mark.long
@pytest.mark.thorough
def test_the_whole_surface_over_sources_that_change(tmp_path: Path) -> None:
    records = surface_records(seed=7, records=60)
    later = pa.struct([("new", pa.int8()), *list(VALUE)[::-1]])
    changed, whole = Pipeline(tmp_path / "changed", surface()), Pipeline(tmp_path / "whole", surface())
    for job in (changed, whole):
        for topic, given in records.items():
            half = len(given) // 2
            job.archive(topic, given[:half], (pa.string(), VALUE), partitions=2)
        job.run()
        for topic, given in records.items():
            half = len(given) // 2
            job.archive(topic, given[half:], (pa.string(), later if job is changed else VALUE), partitions=2)
        job.run()
    for topic in surface().sink_topics:
        assert changed.output(topic) == whole.output(topic), topic
