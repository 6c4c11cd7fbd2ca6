"""The replay on real Spark: the right answer, whatever the slices; errors as the worker raised them."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext

from hindstream.runs import find_plan, open_warehouse
from hindstream.spark.phases import audit, commit, plan, publish, replay
from hindstream.spark.tasks.unforeseen import unforeseen
from statelib.commits import NothingToDo
from statelib.commits.archives import open_archive
from statelib.dsl import StreamsBuilder
from statelib.errors.kinds import ConfigurationError, InputError, InternalError, RetryableError
from statelib.job.job import Job
from tests.hindstream.spark.orders import (
    DAY_MS,
    PARTITIONS,
    archive_orders,
    check_published,
    make_settings,
    orders,
    published,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.settings.settings import Settings
    from tests.hindstream.spark.conftest import Replayed

pytestmark = pytest.mark.spark


def run_phases(job: Job, settings: Settings, until_ms: int | None = None) -> None:
    planned = plan.run(job, settings.model_copy(update={"until": until_ms}))
    assert not isinstance(planned, NothingToDo)
    for phase in (replay, audit, commit, publish):
        phase.run(job, settings, planned.run_id)


def test_the_answer_is_that_of_a_plain_computation(settings: Settings, orders_job: Job) -> None:
    run_phases(orders_job, settings)
    check_published(settings, orders())


def test_slices_give_the_same_bytes_as_one_run(settings: Settings, orders_job: Job, tmp_path: Path) -> None:
    run_phases(orders_job, settings)
    sliced = make_settings(tmp_path / "sliced")
    archive_orders(sliced, orders())
    for until_ms in (DAY_MS, 2 * DAY_MS + 1, None):
        run_phases(orders_job, sliced, until_ms)
    assert published(sliced) == published(settings)


def test_a_replayed_run_is_left_as_it_is(replayed: Replayed) -> None:
    assert replay.run(replayed.job, replayed.settings, replayed.plan.run_id) == replayed.staged


def test_attempts_have_names_of_their_own(replayed: Replayed) -> None:
    names = {outcome.attempt for outcome in replayed.staged.tasks}
    assert len(names) == 2 * PARTITIONS
    assert all(name.startswith(f"orders.{replayed.plan.run_id}.") for name in names)


def test_a_record_that_cannot_be_used_names_its_place(tmp_path: Path, spark: object, orders_job: Job) -> None:
    settings = make_settings(tmp_path)
    table = orders(200)
    timestamp = table.column("timestamp").cast(pa.int64()).to_pylist()
    timestamp[117] = -5
    bad = table.set_column(2, "timestamp", pa.array(timestamp, pa.int64()).cast(pa.timestamp("ms", "UTC")))
    archive_orders(settings, bad)
    plan.run(orders_job, settings)
    with pytest.raises(InputError) as raised:
        replay.run(orders_job, settings)
    place = raised.value.place
    assert place["topic"] == "orders"
    assert place["task"] == f"0_{place['partition']}"
    assert isinstance(place["offset"], int)
    assert "Traceback" not in str(raised.value)


def test_a_truncated_file_names_its_place(settings: Settings, orders_job: Job) -> None:
    archive = open_archive(open_warehouse(settings), "orders")
    plan.run(orders_job, settings)
    file = Path(archive.uri) / archive.files(1)[0].path
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(InputError) as raised:
        replay.run(orders_job, settings)
    assert raised.value.place["partition"] == 1
    assert file.name in str(raised.value.place["file"])


def failing_job(act: Callable[[], None]) -> Job:
    """A job whose filter does something first."""

    def predicate(columns: pa.RecordBatch) -> pa.Array:
        act()
        return pc.is_valid(columns.column("key"))

    builder = StreamsBuilder("failing")
    stream = builder.stream("orders").filter(predicate)
    stream.deduplicate_by_key_value("order_id", timedelta(days=1)).to("once")
    return Job("failing", builder.build())


def test_a_passing_fault_is_tried_again(settings: Settings, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def act() -> None:
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0:
            (marks / str(context.attemptNumber())).touch()
            if context.attemptNumber() < 2:
                raise RetryableError("the store did not answer")

    job = failing_job(act)
    planned = plan.run(job, settings)
    staged = replay.run(job, settings)
    assert {mark.name for mark in marks.iterdir()} == {"0", "1", "2"}
    assert staged.run_id == planned.run_id


@pytest.mark.parametrize(
    ("error", "expected", "attempts"),
    [
        (RetryableError("the store did not answer"), RetryableError, 4),
        (InputError("not this record", partition=1, offset=7), InputError, 1),
        (ZeroDivisionError("a mapper's defect"), ConfigurationError, 1),
    ],
)
def test_errors_arrive_as_the_worker_raised_them(
    settings: Settings, tmp_path: Path, error: Exception, expected: type[Exception], attempts: int
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def act() -> None:
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0:
            (marks / str(context.attemptNumber())).touch()
            raise error

    job = failing_job(act)
    plan.run(job, settings)
    with pytest.raises(expected) as raised:
        replay.run(job, settings)
    assert str(error).split(" (")[0] in str(raised.value)
    assert raised.value.place["task"]
    assert len(list(marks.iterdir())) == attempts


def test_a_fault_of_the_host_is_named(settings: Settings, orders_job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    plan.run(orders_job, settings)
    with pytest.raises(ConfigurationError, match=r"Not a directory.*/file.*move what is in its place away"):
        replay.run(orders_job, settings.model_copy(update={"state_dir": tmp_path / "file"}))


def test_what_nobody_has_foreseen_is_a_fault_of_the_system_or_a_defect() -> None:
    of_the_system = unforeseen(ConnectionResetError("gone"), "0_0", "above")
    assert isinstance(of_the_system, RetryableError)
    assert "a task failed with ConnectionResetError: gone" in str(of_the_system)
    assert isinstance(unforeseen(ZeroDivisionError("ours"), "0_0", "above"), InternalError)
    assert isinstance(unforeseen(MemoryError("Unable to allocate 4. GiB"), "0_0", "above"), RetryableError)


def test_a_failure_for_good_ends_the_other_tasks(settings: Settings, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def act() -> None:
        context = TaskContext.get()
        if context is None:
            return
        if context.partitionId() == 0:
            raise InputError("not this record")
        time.sleep(60)
        (marks / str(context.partitionId())).touch()

    job = failing_job(act)
    plan.run(job, settings)
    with pytest.raises(InputError, match="not this record"):
        replay.run(job, settings)
    assert not list(marks.iterdir())


def test_an_unknown_run_is_a_clear_error(settings: Settings, orders_job: Job) -> None:
    with pytest.raises(ConfigurationError, match="there is no such run"):
        replay.run(orders_job, settings, "00000009-1")


def test_the_newest_run_is_meant_where_none_is_named(settings: Settings, orders_job: Job) -> None:
    first = plan.run(orders_job, settings.model_copy(update={"until": DAY_MS}))
    second = plan.run(orders_job, settings)
    assert first != second
    assert find_plan(open_warehouse(settings), "orders", None) == second
