"""``hindstream handover``: a job's state for a live Kafka Streams application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console.numbers import bytes_text, count_text
from hindstream.console.results import Results
from hindstream.kafka.handover import hand_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hindstream.console.json_lines import Output
    from hindstream.kafka.local_state.directory import LocalState
    from statelib.job.handover import Handover, StoreChangelog
    from statelib.settings.settings import Settings


def run_handover(
    handover: Handover,
    settings: Settings,
    *,
    commit: int | None,
    replace: bool,
    stopped: bool,
    state_dir: Path | None = None,
    output: Output = "table",
) -> None:
    """Hands over, and prints what. Raises as `hindstream.kafka.handover.hand_over` does."""
    done = hand_over(handover, settings, commit=commit, replace=replace, stopped=stopped, state_dir=state_dir)
    out = Results(output)
    print_changelogs(done.stores, out)
    print_offsets(done.offsets, out)
    if done.local_state is not None:
        print_local_state(done.local_state, out)
    out.say(
        f"{done.group} continues from commit {done.commit} of {handover.job}. Everything was read back and is equal."
    )
    of = {"job": handover.job, "commit": done.commit, "group": done.group, "stores": done.stores}
    out.result({**of, "offsets": offsets_data(done.offsets), "local_state": done.local_state})


def print_local_state(laid: LocalState, out: Results) -> None:
    """Prints the tasks of a state directory, and what to do with them."""
    table = Table("task", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("size", justify="right")
    for task, size in laid.tasks.items():
        table.add_row(task, bytes_text(size))
    out.table(table)
    out.say(f"The state directory is {laid.path}. Copy its tasks to hosts that have no local state of the application.")
    if laid.restored:
        out.say(f"Restored from changelogs all the same: {', '.join(laid.restored)}.")


def print_changelogs(stores: Iterable[StoreChangelog], out: Results) -> None:
    """Prints stores with what they were carried over in."""
    table = Table("store", "changelog", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("records", justify="right")
    for of in stores:
        table.add_row(of.store, of.changelog, count_text(of.records))
    out.table(table)


def offsets_data(offsets: Mapping[tuple[str, int], int]) -> list[dict[str, object]]:
    """Where the other side goes on, as JSON data."""
    return [{"topic": topic, "partition": partition, "offset": n} for (topic, partition), n in sorted(offsets.items())]


def print_offsets(offsets: Mapping[tuple[str, int], int], out: Results) -> None:
    """Prints where the other side goes on, by topic and partition."""
    table = Table("topic", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("partition", justify="right")
    table.add_column("continues at", justify="right")
    for (topic, partition), offset in sorted(offsets.items()):
        table.add_row(topic, str(partition), count_text(offset))
    out.table(table)
