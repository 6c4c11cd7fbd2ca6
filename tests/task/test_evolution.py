"""A job whose topology changes between two slices: what goes on, what begins anew, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    BufferConfig,
    Deduplicated,
    Materialized,
    Named,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    max_,
    open_state,
    sum_,
)
from statelib.commits.layout import CommitLog
from statelib.documents.plans import Plan
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

MINUTE = 60_000
TYPES = (pa.string(), pa.struct([("shop", pa.string()), ("amount", pa.int64()), ("id", pa.string())]))
SALES = [
    (f"k{i % 5}", {"shop": f"s{i % 3}", "amount": i, "id": f"i{i % 70}"}, i * 3_000 - (i % 7) * 4_000)
    for i in range(7, 200)
]
CUT = 5 * MINUTE


def shop_totals(
    *,
    aggregation: Any = None,
    minutes: int = 1,
    filtered: Any = None,
    name: str | None = None,
    by: Any = "shop",
    extra: Callable[[StreamsBuilder, Any], None] | None = None,
    interval: int = 2,
) -> Topology:
    builder = StreamsBuilder("job")
    sales = builder.stream("sales")
    if filtered is not None:
        sales = sales.filter(filtered)
    seen = Deduplicated.with_(store_name="seen")
    once = sales.deduplicate_by_key_value("id", timedelta(minutes=interval), seen)
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=minutes), timedelta(minutes=1))
    totals = (
        once.group_by(by)
        .windowed_by(windows)
        .aggregate(
            aggregation or {"sales": count(), "amount": sum_("amount")},
            Materialized.as_("totals"),
            **({} if name is None else {"named": Named.as_(name)}),
        )
    )
    totals.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")).to_stream().to("out")
    if extra is not None:
        extra(builder, once)
    return builder.build()


def pipeline(directory: Path, topology: Topology) -> Pipeline:
    made = Pipeline(directory, topology)
    made.archive("sales", SALES, TYPES, partitions=2)
    return made


def undisturbed(directory: Path) -> list[Any]:
    whole = pipeline(directory, shop_totals())
    whole.run(CUT)
    whole.run()
    return whole.output("out")


def evolved(directory: Path, after: Topology, reset: list[str] | None = None) -> tuple[Pipeline, Plan]:
    """Half of the sales by the plain topology, the others by ``after``."""
    changed = pipeline(directory, shop_totals())
    changed.run(CUT)
    changed.topology = after
    planned = changed.plan(reset_stores=reset or [])
    assert isinstance(planned, Plan)
    changed.run(reset_stores=reset or [])
    return changed, planned


def everything(batch: pa.RecordBatch) -> pa.Array:
    return pc.is_valid(batch.column("timestamp"))


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (lambda: shop_totals(name="by-shop"), "is new"),
        (lambda: shop_totals(filtered=everything), "below other nodes"),
    ],
    ids=["a node has another name", "a stateless step has come in, and all names of nodes have moved"],
)
def test_what_changes_no_store_goes_on(tmp_path: Path, after: Callable[[], Topology], says: str) -> None:
    changed, planned = evolved(tmp_path / "changed", after())
    assert changed.output("out") == undisturbed(tmp_path / "whole")
    evolution = planned.evolution
    assert evolution is not None
    assert evolution.fingerprint == shop_totals().fingerprint
    assert not evolution.dropped_families
    assert any(says in change for change in evolution.changes)
    head = CommitLog(changed.warehouse, "job").head()
    assert head is not None
    assert (head.evolution, head.fingerprint) == (evolution, after().fingerprint)
    assert changed.plan() is not None  # and the next one is of the same topology again


def test_the_code_of_a_function_may_change_and_that_is_said(tmp_path: Path) -> None:
    changed = pipeline(tmp_path, shop_totals(filtered=lambda batch: pc.is_valid(batch.column("key"))))
    changed.run(CUT)
    changed.topology = shop_totals(filtered=lambda batch: pc.equal(batch.column("key"), "k1"))
    planned = changed.plan()
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    assert [change for change in planned.evolution.changes if "the same with other code" in change]
    changed.run()
    assert len(changed.output("out")) > 0


def test_a_new_store_begins_empty_and_a_new_sink_at_offset_0(tmp_path: Path) -> None:
    def counted(builder: StreamsBuilder, once: Any) -> None:
        del builder
        once.group_by_key().count(Materialized.as_("per-key")).to_stream().to("counts")

    changed, planned = evolved(tmp_path / "changed", shop_totals(extra=counted))
    assert planned.evolution is not None
    assert "store per-key is new and begins empty" in planned.evolution.changes
    assert changed.output("out") == undisturbed(tmp_path / "whole")
    counts = changed.output("counts")
    assert {offset for partition, offset, *_ in counts if partition == 0} == set(
        range(sum(partition == 0 for partition, *_ in counts))
    )
    firsts = {key: value for _, _, key, value, _ in reversed(counts)}
    assert set(firsts.values()) == {1}


def test_a_sink_that_went_and_came_again_goes_on_where_it_was(tmp_path: Path) -> None:
    def copied(builder: StreamsBuilder, once: Any) -> None:
        del builder
        once.to("copy")

    both = pipeline(tmp_path, shop_totals(extra=copied))
    both.run(2 * MINUTE)
    before = len(both.output("copy"))
    both.topology = shop_totals()
    both.run(4 * MINUTE)
    assert len(both.output("copy")) == before
    both.topology = shop_totals(extra=copied)
    both.run()
    copies = both.output("copy")
    assert len(copies) > before
    for partition in (0, 1):
        offsets = [offset for at, offset, *_ in copies if at == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("after", "why"),
    [
        (lambda: shop_totals(minutes=2), "store totals: its advance_ms was 60000 and is 120000"),
        (lambda: shop_totals(aggregation={"sales": count()}), "store totals: its aggregator aggregations was"),
        (
            lambda: shop_totals(aggregation={"sales": count(), "amount": max_("amount")}),
            "store totals: its aggregator aggregations was",
        ),
        (lambda: shop_totals(interval=3), "store seen: its interval_ms was 120000 and is 180000"),
        (lambda: shop_totals(by="id"), "store totals: the keys of the records that come to it are made otherwise"),
    ],
    ids=["windows", "fewer aggregations", "another aggregation of the same type", "deduplication interval", "grouping"],
)
def test_a_store_that_would_mean_something_else_is_refused(
    tmp_path: Path, after: Callable[[], Topology], why: str
) -> None:
    changed = pipeline(tmp_path, shop_totals())
    changed.run(CUT)
    state, out = changed.state(), changed.output("out")
    changed.topology = after()
    with pytest.raises(ConfigurationError, match=f"(?s){why}.*reset_stores=.*new name"):
        changed.run()
    changed.topology = shop_totals()
    assert (changed.state(), changed.output("out")) == (state, out)
    changed.run()
    assert changed.output("out") == undisturbed(tmp_path / "whole")


def test_a_store_that_is_reset_begins_empty_and_the_others_go_on(tmp_path: Path) -> None:
    after = shop_totals(minutes=2)
    changed, planned = evolved(tmp_path / "changed", after, ["totals", "final-store", "seen"])
    assert planned.evolution is not None
    reset = [change for change in planned.evolution.changes if "is reset" in change]
    assert len(reset) == 2  # the windows and their buffer; what was seen fits, and stays
    assert any("totals" in change for change in reset)
    # The windows know only the second half, of which the deduplication has left out what the first half had.
    plain = pipeline(tmp_path / "plain", shop_totals())
    plain.run(CUT)
    first_half = {(partition, offset) for partition, offset, *_ in plain.output("out")}
    fresh = [row for row in changed.output("out") if (row[0], row[1]) not in first_half]
    assert fresh
    assert all((row[2]["window_end"] - row[2]["window_start"]).total_seconds() == 120 for row in fresh)
    again = changed.plan(reset_stores=["totals", "final-store"])
    assert not isinstance(again, Plan) or again.evolution is None  # the setting may stay: there is nothing to reset


def test_a_store_with_a_changelog_cannot_be_reset(tmp_path: Path) -> None:
    """What is rebuilt from the changelog would have all that the store has given up."""
    changed = Pipeline(tmp_path, shop_totals(), changelogs=["totals"])
    changed.archive("sales", SALES, TYPES, partitions=2)
    changed.run(CUT)
    changed.topology = shop_totals(minutes=2)
    with pytest.raises(ConfigurationError, match=r"totals: .*it has a changelog.*reset_stores=final-store\), or"):
        changed.run(reset_stores=["totals"])


def test_a_removed_store_must_be_given_up(tmp_path: Path) -> None:
    def bare() -> Topology:
        builder = StreamsBuilder("job")
        builder.stream("sales").group_by("shop").count(Materialized.as_("totals-by-shop")).to_stream().to("out")
        return builder.build()

    changed = pipeline(tmp_path, shop_totals())
    changed.run(CUT)
    changed.topology = bare()
    with pytest.raises(ConfigurationError, match="store seen: it is gone"):
        changed.run()


def test_other_sources_and_other_tasks_are_refused(tmp_path: Path) -> None:
    def other_source(builder: StreamsBuilder, once: Any) -> None:
        del once
        builder.stream("returns").to("copies")

    def one_more_stage(builder: StreamsBuilder, once: Any) -> None:
        del builder
        once.group_by("id").count(Materialized.as_("per-id")).to_stream().to("ids")

    changed = pipeline(tmp_path, shop_totals())
    changed.archive("returns", SALES[:10], TYPES, partitions=2)
    changed.run(CUT)
    for extra, why in ((other_source, "source topic returns is new"), (one_more_stage, "sub-topologies were")):
        changed.topology = shop_totals(extra=extra)
        with pytest.raises(ConfigurationError, match=f"{why}.*new name"):
            changed.run()


def test_other_semantics_are_refused(tmp_path: Path) -> None:
    first = pipeline(tmp_path, shop_totals())
    first.run(CUT)
    with pytest.raises(ConfigurationError, match=r"made with the semantics kip, not kafka-4\.3"):
        Pipeline(tmp_path, shop_totals(), semantics="kafka-4.3").run()


def test_a_job_goes_on_with_a_later_version_of_kafka_streams_that_has_the_same_rules(tmp_path: Path) -> None:
    first = Pipeline(tmp_path, shop_totals(), semantics="kafka-4.3")
    first.archive("sales", SALES, TYPES, partitions=2)
    first.run(CUT)
    later = Pipeline(tmp_path, shop_totals(), semantics="kafka-4.4")
    later.run()
    whole = Pipeline(tmp_path / "whole", shop_totals(), semantics="kafka-4.4")
    whole.archive("sales", SALES, TYPES, partitions=2)
    whole.run()
    assert later.state() == whole.state()
    log = CommitLog(later.warehouse, "job")
    assert [log.read(number).semantics for number in (1, 2)] == ["kafka-4.3", "kafka-4.4"]


@pytest.mark.parametrize("cut", [CUT, CUT - 20_000], ids=["between windows", "within one"])
@pytest.mark.parametrize("renamed", [False, True], ids=["another aggregation", "and the buffer has another name"])
def test_what_waits_stays_when_its_aggregation_goes(tmp_path: Path, renamed: bool, cut: int) -> None:
    """Windows wait in the store of their aggregation, of which the buffer gets them before that is given up."""

    def counts(store: str, final: str, *, condensed: bool) -> Topology:
        builder = StreamsBuilder("job")
        windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(minutes=1))
        table = builder.stream("sales").group_by("shop").windowed_by(windows).count(Materialized.as_(store))
        until_closed = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name(final)
        table.suppress(until_closed).to_stream().to("out")
        if not condensed:  # another reader wants the updates
            table.to_stream().to("updates")
        return builder.build()

    outputs = []
    for condensed in (False, True):
        changed = pipeline(tmp_path / f"{condensed}", counts("before", "final", condensed=condensed))
        changed.run(cut)
        with open_state(tmp_path / f"{condensed}" / "warehouse", "job", state_dir=tmp_path / "read") as state:
            waiting = state.store("final-store").read().to_pylist()
        changed.topology = counts("after", "last" if renamed else "final", condensed=condensed)
        asked = {"migrate_stores": ["final-store=last-store"]} if renamed else {}
        changed.run(cut + 30_000, reset_stores=["before"], **asked)
        halfway = changed.state()
        changed.run()
        outputs.append((waiting, changed.output("out"), halfway, changed.state()))
    assert outputs[0] == outputs[1]
    assert {row["window_start"].minute for row in outputs[0][0]} == {3, 4}
    assert all(row["leaves_at"] - row["window_end"] == timedelta(minutes=1) for row in outputs[0][0])


@pytest.mark.parametrize("fill", [[], ["counts"]], ids=["begins empty", "is filled"])
def test_tasks_that_kept_nothing_get_their_first_store(tmp_path: Path, fill: list[str]) -> None:
    def passes(*, counted: bool) -> Topology:
        builder = StreamsBuilder("job")
        sales = builder.stream("sales")
        sales.to("out")
        if counted:
            sales.group_by_key().count(Materialized.as_("counts")).to_stream().to("counted")
        return builder.build()

    changed = pipeline(tmp_path / "changed", passes(counted=False))
    changed.run(CUT)
    changed.topology = passes(counted=True)
    changed.run(fill_stores=fill)
    always = pipeline(tmp_path / "always", passes(counted=True))
    always.run(CUT)
    always.run()
    assert (changed.state() == always.state()) is bool(fill)
    assert changed.output("out") == always.output("out")
    keys = {row[2] for row in changed.output("counted")}
    assert keys == {f"k{n}" for n in range(5)}
