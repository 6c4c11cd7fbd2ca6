"""``hindstream migrate live``: what the steps of a live application's migration say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, duration_text, time_text
from hindstream.console.results import Results
from hindstream.kafka import live_migration
from hindstream.kafka.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hindstream.console.json_lines import Output
    from hindstream.kafka.changelog_history import ChangelogHistory
    from hindstream.kafka.live_migration import LiveStore, Prepared
    from statelib.settings.settings import Settings

_LONGEST_MS = 2**63 - 1


def print_plan(live: LiveStore, settings: Settings, output: Output = "table") -> None:
    """Prints what would be done, and what the changelog has."""
    out, plan = Results(output), live_migration.preview(Cluster(settings), live)
    _print_histories(plan.histories, out)
    on_host = ", ".join(map(str, plan.tasks)) or "none"
    out.say(f"Partitions of the store on this host, whose tasks' local state is deleted: {on_host}.")
    out.say(f"min.compaction.lag.ms is {_lag(plan.lag_ms)}, and has to be {_lag(plan.needed_ms)}.")
    out.say("Nothing was changed.")
    histories = list(map(_history_data, plan.histories))
    out.result({"lag_ms": plan.lag_ms, "needed_ms": plan.needed_ms, "tasks": plan.tasks, "histories": histories})


def run_prepare(live: LiveStore, settings: Settings, output: Output = "table") -> None:
    """Prepares, and prints what was done."""
    out, done = Results(output), live_migration.prepare(Cluster(settings), live)
    _print_prepared(done, out)
    out.say("Start the application with its new store; when it has restored, stop it, and verify.")
    out.result(done)


def run_verify(live: LiveStore, settings: Settings, output: Output = "table") -> None:
    """Compares, and prints it.

    Raises:
        CorruptedDataError: Latest values differ.
    """
    out, compared = Results(output), live_migration.verify(Cluster(settings), live)
    _print_histories([history for history, _ in compared], out)
    for _, found in compared:
        equal, differences = count_text(found.equal), count_text(found.differences)
        out.say(f"Partition {found.partition}: {equal} latest values are equal, {differences} differ.")
    partitions = [{**_history_data(history), "comparison": comparison} for history, comparison in compared]
    out.result({"application_id": live.application_id, "store": live.store, "partitions": partitions})
    live_migration.check_equal(live, compared)


def run_rollback(live: LiveStore, settings: Settings, former_lag_ms: int | None, output: Output = "table") -> None:
    """Goes back, and prints what was done."""
    out, done = Results(output), live_migration.roll_back(Cluster(settings), live, former_lag_ms)
    _print_prepared(done, out)
    out.say("Start the application with its former store.")
    out.result(done)


def _print_prepared(done: Prepared, out: Results) -> None:
    deleted = ", ".join(done.deleted) or "there was none"
    out.say(f"Local state deleted, of tasks: {deleted}.")
    out.say(f"min.compaction.lag.ms was {_lag(done.former_lag_ms)}, and is {_lag(done.lag_ms)}.")
    if done.of_streams_group:
        step = "start the application once with group.protocol=classic"
        out.say(f"Its group is of the protocol streams, which refuses a topology that has changed: {step}.")


def _history_data(found: ChangelogHistory) -> dict[str, object]:
    """As JSON data; keys and values are left out."""
    names = ("partition", "records", "absent", "complete_from_ms", "oldest_ms", "newest_ms", "keys")
    return {**{name: getattr(found, name) for name in names}, "too_late": len(found.too_late)}


def _print_histories(histories: Iterable[ChangelogHistory], out: Results) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("partition", "records", "compacted or markers", "keys", "too late", "from", "complete from", "to"):
        table.add_column(name, justify="right")
    for found in histories:
        counts = (found.partition, found.records, found.absent, found.keys, len(found.too_late))
        complete = found.oldest_ms if found.complete_from_ms is None else found.complete_from_ms
        times = (found.oldest_ms, complete, found.newest_ms)
        table.add_row(*map(count_text, counts), *("" if time is None else time_text(time) for time in times))
    out.table(table)


def _lag(lag_ms: int) -> str:
    return f"{lag_ms} ({duration_text(lag_ms)})" if lag_ms < _LONGEST_MS else str(lag_ms)
