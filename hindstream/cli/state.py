"""``hindstream state``: what a job's commits hold, whether all of it is whole, and the way back to one of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import bytes_text, time_text
from hindstream.console.output import standard_output
from hindstream.runs import now_ms, open_warehouse, retention
from hindstream.spark.migration import rebuild
from hindstream.spark.placement.hosts import clean_hosts
from statelib.commits import CommitLog, maintain, oldest_restorable, preview_rollback, rollback, verify
from statelib.commits.layout import rolled_back
from statelib.commits.republish import republish
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.commits import RollbackPreview
    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings


def print_commits(job: str, settings: Settings) -> None:
    """Prints a line for each commit whose state can be restored, and what maintenance would free.

    Raises:
        ConfigurationError: The job has no commits.
    """
    warehouse = open_warehouse(settings)
    log = CommitLog(warehouse, job)
    head = log.head_number()
    if not head:
        raise ConfigurationError("the job has no commits", job=job, next_step="check --warehouse and the job's name")
    oldest = oldest_restorable(warehouse, job)
    commits = [log.read(n) for n in range(oldest, head + 1)]
    references = Counter(place for commit in commits for place in _files(commit))
    taken_back = rolled_back(commits)
    console = standard_output()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("commit", no_wrap=True)
    for name in ("made", "slice before"):
        table.add_column(name, min_width=len("2013-01-01"))  # the time goes below where a terminal is narrow
    for name in ("state", "shared", "unique"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for commit in commits:
        sizes = _files(commit)
        unique = sum(size for place, size in sizes.items() if references[place] == 1)
        table.add_row(
            str(commit.commit),
            time_text(commit.created_at_ms).removesuffix(" UTC"),
            time_text(commit.until_ms).removesuffix(" UTC"),
            bytes_text(sum(sizes.values())),
            bytes_text(sum(sizes.values()) - unique),
            bytes_text(unique),
            _remark(commit, taken_back.get(commit.commit), is_head=commit.commit == head),
        )
    console.print(table)
    if oldest > 1:
        console.print(f"The states of commits 1 to {oldest - 1} have expired.", highlight=False)
    all_bytes = sum({place: size for commit in commits for place, size in _files(commit).items()}.values())
    console.print(f"State files of these commits: {bytes_text(all_bytes)}.", highlight=False)
    would = maintain(warehouse, job, retention(settings), now_ms=now_ms(), dry_run=True)
    freed = f"{counted(would.deleted_files, 'file')}, {bytes_text(would.deleted_bytes)}"
    console.print(
        f"Maintenance would free {freed}, and keep commit {would.oldest_restorable} and later.",
        soft_wrap=True,
        highlight=False,
    )


def print_verification(job: str, settings: Settings, commit: int | None, *, everything: bool) -> None:
    """Reads every byte of commits, and prints what is damaged.

    Args:
        job: The job's name.
        settings: See `Settings`.
        commit: The commit; None: the newest.
        everything: Verify all commits: the states that can be restored, and all that has been written to the sinks.

    Raises:
        CorruptedDataError: Something is damaged.
        ConfigurationError: There is no such commit, or its state has expired.
    """
    warehouse = open_warehouse(settings)
    found = verify(warehouse, job, commit, everything=everything, at_once=settings.parallel_transfers)
    for damage in found.damages:
        typer.echo(f"{damage.file}: {damage.what} ({damage.where})")
    checked = f"{counted(found.files, 'file')}, {bytes_text(found.size_bytes)}"
    commits = counted(len(found.commits), "commit") if len(found.commits) > 1 else f"commit {found.commits[0]}"
    if found.damages:
        way_out = found.way_out
        if rebuild.is_possible(job, settings):
            way_out += f"; or rebuild the newest state from its changelogs: hindstream state rebuild {job}"
        raise CorruptedDataError(
            f"damaged or missing: {len(found.damages)} of the {counted(found.files, 'file')} of {commits}",
            job=job,
            next_step=way_out,
        )
    typer.echo(f"{commits}: {checked}, every byte is as it was written.")


def roll_back(job: str, settings: Settings, to: int, *, yes: bool, dry_run: bool, supersede: bool) -> None:
    """Prints what a rollback takes back, asks, and does it.

    Raises:
        HindstreamError: See `statelib.commits.rollback`.
    """
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job).head()
    if head is None or head.rolled_back_to != to:
        _print_preview(preview_rollback(warehouse, job, to), supersede=supersede)
        if dry_run:
            typer.echo("Nothing was changed.")
            return
        if not yes and not typer.confirm("Roll back?", err=True):
            raise typer.Exit(1)
    made = rollback(warehouse, job, to, now_ms=now_ms(), supersede=supersede)
    typer.echo(
        f"{job}: commit {made.commit} is the head, a rollback to commit {to}; the next plan continues from there."
    )


def publish_anew(job: str, settings: Settings, topic: str, *, yes: bool, dry_run: bool) -> None:
    """Prints how a topic's archive differs from what the commits have written, asks, and publishes that anew.

    Raises:
        HindstreamError: See `statelib.commits.republish`.
    """
    warehouse = open_warehouse(settings)
    found = republish(warehouse, job, topic, now_ms=now_ms(), dry_run=True)
    if not found.added and not found.removed:
        typer.echo(f"{topic}: the archive has all that {job} has written to it, {counted(found.rows, 'record')}.")
        return
    come = counted(found.added, "file comes", "files come")
    go = counted(found.removed, "other goes", "others go")
    typer.echo(f"{topic}: {come}, {go}.")
    if dry_run:
        typer.echo("Nothing was changed.")
        return
    if not yes and not typer.confirm("Republish?", err=True):
        raise typer.Exit(1)
    done = republish(warehouse, job, topic, now_ms=now_ms())
    typer.echo(f"{topic}: republished, {counted(done.rows, 'record')}.")


def _print_preview(preview: RollbackPreview, *, supersede: bool) -> None:
    commits = ", ".join(map(str, preview.commits)) or "none"
    typer.echo(f"Commits rolled back: {commits}.")
    for topic, gone in sorted(preview.topics.items()):
        typer.echo(f"  {topic}: {counted(gone.rows, 'record')} in {counted(gone.files, 'file goes', 'files go')}.")
    typer.echo(f"To come as far again, {counted(preview.records, 'record has', 'records have')} to be replayed.")
    if preview.open_run is not None:
        typer.echo(_in_the_way(preview.open_run, supersede=supersede))


def rebuild_state(job: str, settings: Settings, *, everything: bool, yes: bool, dry_run: bool, supersede: bool) -> None:
    """Prints which tasks' states are made anew of their changelogs, asks, and does it.

    Raises:
        HindstreamError: See `statelib.task.rebuilt_head`.
    """
    preview = rebuild.preview(job, settings, everything=everything)
    for damages in preview.damages.values():
        for damage in damages:
            typer.echo(f"{damage.file}: {damage.what} ({damage.where})")
    for task_id, stores in preview.changelogs.items():
        ends = ", ".join(f"{store} up to offset {end}" for store, end in stores.items()) or "nothing: it has no stores"
        typer.echo(f"Task {task_id} is rebuilt from the changelogs of {ends}.")
    if not preview.changelogs:
        typer.echo(f"Every state file of commit {preview.head} is undamaged: there is nothing to rebuild.")
    elif preview.open_run is not None:
        typer.echo(_in_the_way(preview.open_run, supersede=supersede))
    if dry_run:
        typer.echo("Nothing was changed.")
        return
    if preview.changelogs and not yes and not typer.confirm("Rebuild?", err=True):
        raise typer.Exit(1)
    made = rebuild.rebuild(job, settings, everything=everything, supersede=supersede)
    if made.commit > preview.head:
        typer.echo(f"{job}: commit {made.commit} is the head: commit {preview.head}, its state rebuilt.")


def clean(job: str, settings: Settings) -> None:
    """Cleans up the local state on all hosts, and prints what was there.

    Raises:
        HindstreamError: See `hindstream.spark.placement.hosts.clean_hosts`.
    """
    for host, found in clean_hosts(job, settings):
        kept = counted(found.kept_files, "file is", "files are")
        removed = f"{counted(found.removed_files, 'file')}, {counted(found.removed_folders, 'folder')}"
        typer.echo(f"{host}: {kept} as commit and content say; removed {removed}.")


def _in_the_way(open_run: str, *, supersede: bool) -> str:
    what = "loses its commit number" if supersede else "is in the way: wait for it, or give --supersede"
    return f"Run {open_run} is open and {what}."


def _files(commit: Commit) -> dict[str, int]:
    """Size of each state file of a commit, by task and name."""
    return {
        f"{task_id}/{file.stored_name}": file.size_bytes
        for task_id, task in commit.tasks.items()
        for file in task.state.files
    }


def _remark(commit: Commit, taken_back_by: int | None, *, is_head: bool) -> str:
    parts: Iterable[str] = (
        "head" if is_head else "",
        commit.instead_of_replay or "",
        f"rolled back by {taken_back_by}" if taken_back_by is not None else "",
        "sealed" if commit.end_of_input == "seal" else "",
    )
    return ", ".join(filter(None, parts))
