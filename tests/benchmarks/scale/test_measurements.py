"""Each measurement at a tiny size: the figures mean nothing then, but what they are made of must be right."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.dataset import Dataset, Parameters
from benchmarks.scale.growth import Growth, _against, _cpu_seconds, _Size
from benchmarks.scale.kept_keys import KeptKeys
from benchmarks.scale.memory import Memory
from benchmarks.scale.object_store import ObjectStore
from benchmarks.scale.processes import PeakMemory, in_fresh_process, steps_in_fresh_process
from benchmarks.scale.slices import Slices, _Hours, _hours
from benchmarks.scale.start import Start
from benchmarks.scale.state import State
from benchmarks.scale.waiting import Waiting, answer
from benchmarks.warm_session import HINDSTREAM
from statelib.commits import CommitLog
from statelib.storage import Storage

MIB = 1 << 20


def _take(bytes_: int) -> int:
    with PeakMemory() as memory:
        taken = b"\1" * bytes_
        while memory.peak_bytes < memory.at_begin_bytes + bytes_ // 2:  # until a sample has seen it
            pass
    return memory.peak_bytes - memory.at_begin_bytes + 0 * len(taken)


def test_the_peak_of_a_process_is_its_own_and_beyond_what_it_began_with() -> None:
    mine = bytearray(b"\1") * (400 * MIB)
    small, large = (in_fresh_process(_take, size) for size in (1, 300 * MIB))
    assert len(mine) == 400 * MIB
    assert small < 10 * MIB
    assert 290 * MIB < large < 330 * MIB


@pytest.mark.long
def test_memory_compares_runs_that_spill_with_some_that_do_not(tmp_path) -> None:
    memory = Memory(records=20_000, live_keys=5_000, budget_mib=1, pairs=2)
    peak, equal, cost = memory.compare(tmp_path, "W3", memory.windows())
    assert peak.details["idle worker"] > 20
    assert peak.details["beyond that"] > 0
    assert peak.value == sum(peak.details[of] for of in ("idle worker", "beyond that"))
    assert equal.is_met
    assert cost.details["bounded, spill seconds"] > 0
    assert cost.details["in memory, spill seconds"] == 0
    assert len(str(cost.details["each pair"]).split(", ")) == 2


def test_kept_keys_are_in_the_state(tmp_path) -> None:
    for work, family in (("W1", "clicks-once-STORE.entries"), ("W2", "rates-by-campaign.latest")):
        kept = KeptKeys(work, keys=2_000, hourly=100, hours=2)
        replays, first = kept.begin(tmp_path / work)
        (task,) = first.staged.tasks
        assert 1_900 <= task.stores[family].keys <= 2_000
        hour = replays.run(until_ms=kept.end_ms(1))
        assert 50 <= hour.plan.records <= 150


def test_state_finds_nothing_uploaded_twice(tmp_path) -> None:
    uploaded, empty, restore, get, *as_of = State(
        keys=2_000, records=100, store_keys=200, look_ups=100, repeats=1
    ).figures(tmp_path)
    assert uploaded.value == 0
    assert 0 < uploaded.details["new, MB"] < uploaded.details["state, MB"]
    assert empty.value > 0
    assert restore.value > 0
    assert get.details["bare get, us"] > 0
    assert len(as_of) == 3
    assert min(look_up.value for look_up in (get, *as_of)) > 0  # how much faster is the benchmark's to say


@pytest.mark.long
def test_an_hour_reads_from_its_state(tmp_path) -> None:
    with steps_in_fresh_process(_hours, KeptKeys("W1", 2_000, 100, hours=2), tmp_path) as next_hour:
        hours = _Hours.typical([next_hour()])
    assert set(hours.phases) == {"plan", "replay", "audit", "commit", "publish", "maintain", "report"}
    assert hours.read_bytes > 0
    assert hours.state_bytes > 0


@pytest.mark.long
def test_a_fresh_process_is_measured_beside_spark_alone(tmp_path) -> None:
    figure = Slices(keys=500, records=20, repeats=1)._fresh("W1", "few", tmp_path)
    whole, spark_alone = figure.details["whole process, s"], figure.details["Spark alone, s"]
    assert min(whole, spark_alone) > 0
    assert figure.value == whole - spark_alone  # how much that is, is the benchmark's to say
    assert CommitLog(Storage(str(tmp_path / "warehouse")), "W1").head_number() == 2


@pytest.mark.long
def test_the_history_is_measured_by_phase(tmp_path) -> None:
    figure = Growth(slice_records=10, steady_from=3)._history(tmp_path / "history", 5, is_audited=False)
    assert figure.value > 0
    phases = ("plan", "replay", "audit", "commit", "publish", "maintain")
    assert list(figure.details) == [f"{phase}, ms" for phase in phases]


@pytest.mark.long
def test_requests_are_counted_by_phase_and_answered_late(tmp_path) -> None:
    measured = ObjectStore(commits=3, steady_from=2, partitions=1, slice_records=20, answer_ms=5)
    slices = measured._slices(tmp_path, measured.dataset(tmp_path / "data"), "W1")
    for one in slices:
        assert list(one.phases) == ["plan", "replay", "audit", "commit", "publish", "maintain", "report"]
        for cost in one.phases.values():
            assert cost.requests > 0
            assert cost.wall_seconds > 0.005
    assert sum(cost.requests for cost in slices[1].phases.values()) < 200


def test_what_is_compared_takes_turns() -> None:
    with steps_in_fresh_process(itertools.count, 1) as one, steps_in_fresh_process(itertools.count, 7, 2) as other:
        assert [step() for step in (one, other, one, other, other)] == [1, 7, 2, 9, 11]


def test_sizes_are_compared_within_a_round() -> None:
    """The machine of the second is half as fast; the third's other run was disturbed."""
    few, many = _Size(1_000, 2), _Size(1_000, 4)
    rounds = [{few: 1.0, many: 1.05}, {few: 2.0, many: 2.1}, {few: 3.0, many: 1.0}]
    figure = _against("", rounds, many, few, at_most=1.1)
    assert figure.value == 1.05
    assert figure.details == {"1,000 in 2, us": 2.0, "1,000 in 4, us": 1.05}


def test_a_record_costs_what_the_whole_costs_more_than_the_small_dataset(tmp_path) -> None:
    data, empty = (Dataset.generate(tmp_path / str(n), Parameters(records=n, campaigns=20)) for n in (200_000, 1_000))
    full, base = _cpu_seconds("W1", data.folder, empty.folder, tmp_path / "run")
    assert full > base > 0


def test_the_start_names_what_is_imported_without_need(tmp_path) -> None:
    help_, engine, task = Start(repeats=1).figures(tmp_path)
    assert 0 < help_.value < 30
    assert engine.value == 0
    assert task.details["all, ms"] > 0


@pytest.mark.long
def test_runs_that_wait_are_held_against_each_other(tmp_path) -> None:
    waiting = Waiting(repeats=1)
    shop = waiting.prepared(tmp_path)
    run = [HINDSTREAM, "run", "jobs/orders_by_day.py:job", "--engine", "local"]
    assert not waiting._equal("none").is_met
    for _ in range(2):
        waiting._typical(run, shop, fresh=True)
    assert waiting._equal("twice").is_met
    assert sum(rows for *_, rows, _ in answer(shop)) > 0
    waiting._answers.append(answer(shop) - {min(answer(shop))})
    assert not waiting._equal("a file less").is_met
