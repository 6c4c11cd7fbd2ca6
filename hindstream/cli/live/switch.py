"""``hindstream switch``: how far two live applications are, what differs, and the switch-over."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.cli.live.handover import offsets_data, print_changelogs, print_local_state, print_offsets
from hindstream.cli.versions.diff import DIFFERENT, difference_lines
from hindstream.console.differences import interval_sentences, sink_name, sink_sentences
from hindstream.console.json_lines import json_data, print_json
from hindstream.console.numbers import count_text
from hindstream.console.results import Results
from hindstream.kafka.cluster import Cluster
from hindstream.kafka.live_outputs import compare_outputs, progress
from hindstream.runs import open_warehouse
from hindstream.spark.kafka.switch_over import switch_over
from statelib.columns.times import instant_text
from statelib.commits import CommitLog
from statelib.errors.counted import counted
from statelib.serdes.json import readable_json

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from hindstream.kafka.lag import GroupLag
    from hindstream.kafka.live_outputs import OutputsAsked
    from statelib.job.job import Job
    from statelib.job.switch_over import SwitchOver
    from statelib.settings.settings import Settings

BEHIND = 1
"""The exit code where the shadow has not caught up."""


@dataclass(frozen=True, slots=True)
class Switch:
    """What the commands are about.

    Attributes:
        job: The job of the new version.
        switch: The applications.
        settings: See `Settings`.
        commit: The commit that was handed over to the shadow, or a later one; None: the newest.
    """

    job: Job
    switch: SwitchOver
    settings: Settings
    commit: int | None = None


def print_lag(of: Switch, max_lag: int, output: Output = "table") -> None:
    """Prints how far both applications are.

    Raises:
        HindstreamError: See `hindstream.kafka.live_outputs.progress`.
        Exit: With the code `BEHIND`: the shadow is further behind than ``max_lag`` in a partition.
    """
    log = CommitLog(open_warehouse(of.settings), of.job.name)
    made = log.read(log.head_number() if of.commit is None else of.commit)
    found = progress(Cluster(of.settings), of.job, of.switch, made)
    has_caught_up = found.shadow.most <= max_lag
    out = Results(output)
    out.table(_lag_table(found.old, found.shadow))
    if found.comparable_ms:
        since, until = instant_text(found.since_ms), instant_text(found.until_ms or 0)
        out.say(f"Results from {since} before {until} can be compared.")
    else:
        out.say(f"There is nothing to compare yet: results can be compared from {instant_text(found.since_ms)} on.")
    most = counted(found.shadow.most, "offset")
    out.say(f"{found.shadow.group} has {'' if has_caught_up else 'not '}caught up: it is {most} behind at most.")
    data = {"has_caught_up": has_caught_up, "since_ms": found.since_ms, "until_ms": found.until_ms}
    out.result({**data, "old": _lag_data(found.old), "shadow": _lag_data(found.shadow)})
    if not has_caught_up:
        raise typer.Exit(BEHIND)


def _lag_table(old: GroupLag, shadow: GroupLag) -> Table:
    table = Table("topic", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("partition", "application", "position", "end", "lag"):
        table.add_column(name, justify="left" if name == "application" else "right")
    rows = [(of, group.group) for group in (old, shadow) for of in group.partitions]
    for of, group in sorted(rows, key=lambda row: (row[0].topic, row[0].partition)):
        numbers = (count_text(of.position), count_text(of.end), count_text(of.lag))
        table.add_row(of.topic, str(of.partition), group, *numbers)
    return table


def _lag_data(found: GroupLag) -> dict[str, object]:
    partitions = [{**json_data(of), "lag": of.lag} for of in found.partitions]
    return {"group": found.group, "lag": found.most, "partitions": partitions}


def print_outputs(of: Switch, asked: OutputsAsked, output: Output = "table") -> None:
    """Prints how the outputs of both applications differ.

    Raises:
        HindstreamError: See `hindstream.kafka.live_outputs.compare_outputs`.
        Exit: With the code `DIFFERENT`: there is a difference.
    """
    cluster = Cluster(of.settings)
    with tempfile.TemporaryDirectory(prefix="hindstream-switch-") as scratch:
        found, within = compare_outputs(
            cluster, of.job, of.switch, of.settings, Path(scratch), commit=of.commit, asked=asked
        )
    if output == "json":
        data = {"is_empty": found.is_empty, **json_data(found), "within": json_data(within)}
        print_json(json.loads(readable_json(data)))
    else:
        lines = [f"A is {found.a.job}, B is {found.b.job}.", *interval_sentences(within), *sink_sentences(found)]
        for sink in found.sinks:
            lines += difference_lines(f"{sink_name(sink)}, by {sink.difference.way}", sink.difference, "")
        typer.echo("\n".join(lines))
    if not found.is_empty:
        raise typer.Exit(DIFFERENT)


def run_switch_over(
    of: Switch, *, replace: bool, stopped: bool, state_dir: Path | None = None, output: Output = "table"
) -> None:
    """Switches over, and prints what. Raises as `hindstream.spark.kafka.switch_over.switch_over` does."""
    done = switch_over(of.job, of.switch, of.settings, replace=replace, stopped=stopped, state_dir=state_dir)
    out = Results(output)
    if done.handed_over is None:
        out.say("It was handed over before.")
    else:
        print_changelogs(done.handed_over.stores, out)
    print_offsets(done.offsets, out)
    if done.handed_over is not None and done.handed_over.local_state is not None:
        print_local_state(done.handed_over.local_state, out)
    out.say(f"{done.new} continues where {done.old} has stopped: start it, and never start {done.old} again.")
    nothing: dict[str, object] = {"commit": None, "stores": [], "local_state": None}
    made = nothing if done.handed_over is None else json_data(done.handed_over)
    data = {"old": done.old, "new": done.new, **{name: made[name] for name in nothing}}
    out.result({**data, "offsets": offsets_data(done.offsets)})
