"""``hindstream state``: what a job's commits hold, whether all of it is whole, and the way back to one of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import bytes_text, time_text
from hindstream.console.results import Results
from hindstream.lineage.reported import change_told
from hindstream.runs import now_ms, open_warehouse, retention
from hindstream.spark.migration import rebuild
from hindstream.spark.placement.hosts import clean_hosts
from statelib.commits import CommitLog, maintain, oldest_restorable, preview_rollback, rollback, verify
from statelib.commits.layout import rolled_back
from statelib.commits.publication.republish import republish
from statelib.commits.standing import no_commits
from statelib.errors.counted import counted
from statelib.errors.kinds import CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hindstream.console.json_lines import Output
    from statelib.commits import RollbackPreview
    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings


def print_commits(job: str, settings: Settings, output: Output = "table") -> None:
    """Prints a line for each commit whose state can be restored, and what maintenance would free.

    Raises:
        ConfigurationError: The job has no commits.
    """
    warehouse = open_warehouse(settings)
    log = CommitLog(warehouse, job)
    head = log.head_number()
    if not head:
        raise no_commits(warehouse, job)
    oldest = oldest_restorable(warehouse, job)
    commits = [log.read(n) for n in range(oldest, head + 1)]
    references = Counter(place for commit in commits for place in commit.state_files())
    taken_back = rolled_back(commits)
    out = Results(output)
    rows = []
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("commit", no_wrap=True)
    for name in ("made", "slice before"):
        table.add_column(name, min_width=len("2013-01-01"))  # the time goes below where a terminal is narrow
    for name in ("state", "shared", "unique"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for commit in commits:
        sizes = commit.state_files()
        unique = sum(size for place, size in sizes.items() if references[place] == 1)
        remark = _remark(commit, taken_back.get(commit.commit), is_head=commit.commit == head)
        table.add_row(
            str(commit.commit),
            time_text(commit.created_at_ms).removesuffix(" UTC"),
            time_text(commit.until_ms).removesuffix(" UTC"),
            bytes_text(sum(sizes.values())),
            bytes_text(sum(sizes.values()) - unique),
            bytes_text(unique),
            remark,
        )
        of = {"commit": commit.commit, "committed_at_ms": commit.created_at_ms, "until_ms": commit.until_ms}
        rows.append({**of, "state_bytes": sum(sizes.values()), "unique_bytes": unique, "remark": remark})
    out.table(table)
    if oldest > 1:
        out.say(f"The states of commits 1 to {oldest - 1} have expired.")
    all_bytes = sum({place: size for commit in commits for place, size in commit.state_files().items()}.values())
    out.say(f"State files of these commits: {bytes_text(all_bytes)}.")
    would = maintain(warehouse, job, retention(settings), now_ms=now_ms(), dry_run=True)
    freed = f"{counted(would.deleted_files, 'file')}, {bytes_text(would.deleted_bytes)}"
    out.say(f"Maintenance would free {freed}, and keep commit {would.oldest_restorable} and later.")
    free = {"files": would.deleted_files, "size_bytes": would.deleted_bytes, "oldest_kept": would.oldest_restorable}
    out.result({"job": job, "commits": rows, "state_bytes": all_bytes, "maintenance_would_free": free})


def print_verification(
    job: str, settings: Settings, commit: int | None, *, everything: bool, output: Output = "table"
) -> None:
    """Reads every byte of commits, and prints what is damaged.

    Args:
        job: The job's name.
        settings: See `Settings`.
        commit: The commit; None: the newest.
        everything: Verify all commits: the states that can be restored, and all that has been written to the sinks.
        output: How.

    Raises:
        CorruptedDataError: Something is damaged.
        ConfigurationError: There is no such commit, or its state has expired.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    found = verify(warehouse, job, commit, everything=everything, at_once=settings.parallel_transfers)
    out.result(found)
    for damage in found.damages:
        out.say(f"{damage.file}: {damage.what} ({damage.where})")
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
    out.say(f"{commits}: {checked}, every byte is as it was written.")


def roll_back(
    job: str,
    settings: Settings,
    to: int,
    *,
    yes: bool,
    dry_run: bool,
    supersede: bool,
    output: Output = "table",
) -> None:
    """Prints what a rollback takes back, asks, and does it.

    Raises:
        HindstreamError: See `statelib.commits.versions.rollback`.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    head = CommitLog(warehouse, job).head()
    if head is None or head.rolled_back_to != to:
        preview = preview_rollback(warehouse, job, to)
        _print_preview(preview, out, supersede=supersede)
        if dry_run:
            out.result(preview)
            out.say("Nothing was changed.")
            return
        if not yes and not typer.confirm("Roll back?", err=True):
            raise typer.Exit(1)
    began_ms = now_ms()
    made = rollback(warehouse, job, to, now_ms=began_ms, supersede=supersede)
    change_told(made, settings, began_ms)
    out.say(f"{job}: commit {made.commit} is the head, a rollback to commit {to}; the next plan continues from there.")
    out.result({"job": job, "commit": made.commit, "rolled_back_to": to})


def publish_anew(
    job: str, settings: Settings, topic: str, *, yes: bool, dry_run: bool, output: Output = "table"
) -> None:
    """Prints how a topic's archive differs from what the commits have written, asks, and publishes that anew.

    Raises:
        HindstreamError: See `statelib.commits.publication.republish`.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    found = republish(warehouse, job, topic, now_ms=now_ms(), dry_run=True)
    if not found.added and not found.removed:
        out.say(f"{topic}: the archive has all that {job} has written to it, {counted(found.rows, 'record')}.")
        out.result(found)
        return
    come = counted(found.added, "file comes", "files come")
    go = counted(found.removed, "other goes", "others go")
    out.say(f"{topic}: {come}, {go}.")
    if dry_run:
        out.say("Nothing was changed.")
        out.result(found)
        return
    if not yes and not typer.confirm("Republish?", err=True):
        raise typer.Exit(1)
    done = republish(warehouse, job, topic, now_ms=now_ms())
    out.say(f"{topic}: republished, {counted(done.rows, 'record')}.")
    out.result(done)


def _print_preview(preview: RollbackPreview, out: Results, *, supersede: bool) -> None:
    commits = ", ".join(map(str, preview.commits)) or "none"
    out.say(f"Commits rolled back: {commits}.")
    for topic, gone in sorted(preview.topics.items()):
        out.say(f"  {topic}: {counted(gone.rows, 'record')} in {counted(gone.files, 'file goes', 'files go')}.")
    out.say(f"To come as far again, {counted(preview.records, 'record has', 'records have')} to be replayed.")
    if preview.forks:
        out.say(
            f"Forks that go on from them: {', '.join(preview.forks)}. Their state and their own records stay, but the"
        )
        out.say("records before the fork go, so that their whole history can no longer be read.")
    if preview.serves:
        out.say(f"The readers of {', '.join(preview.serves)} read this job, and go back with it.")
    if preview.open_run is not None:
        out.say(_in_the_way(preview.open_run, supersede=supersede))


def rebuild_state(
    job: str,
    settings: Settings,
    *,
    everything: bool,
    yes: bool,
    dry_run: bool,
    supersede: bool,
    output: Output = "table",
) -> None:
    """Prints which tasks' states are made anew of their changelogs, asks, and does it.

    Raises:
        HindstreamError: See `statelib.task.rebuilt_head`.
    """
    out = Results(output)
    preview = rebuild.preview(job, settings, everything=everything)
    for damages in preview.damages.values():
        for damage in damages:
            out.say(f"{damage.file}: {damage.what} ({damage.where})")
    for task_id, stores in preview.changelogs.items():
        ends = ", ".join(f"{store} up to offset {end}" for store, end in stores.items()) or "nothing: it has no stores"
        out.say(f"Task {task_id} is rebuilt from the changelogs of {ends}.")
    if not preview.changelogs:
        out.say(f"Every state file of commit {preview.head} is undamaged: there is nothing to rebuild.")
    elif preview.open_run is not None:
        out.say(_in_the_way(preview.open_run, supersede=supersede))
    if dry_run:
        out.say("Nothing was changed.")
        out.result(preview)
        return
    if preview.changelogs and not yes and not typer.confirm("Rebuild?", err=True):
        raise typer.Exit(1)
    made = rebuild.rebuild(job, settings, everything=everything, supersede=supersede)
    if made.commit > preview.head:
        out.say(f"{job}: commit {made.commit} is the head: commit {preview.head}, its state rebuilt.")
    out.result({"job": job, "commit": made.commit, "tasks": list(preview.changelogs)})


def clean(job: str, settings: Settings, output: Output = "table") -> None:
    """Cleans up the local state on all hosts, and prints what was there.

    Raises:
        HindstreamError: See `hindstream.spark.placement.hosts.clean_hosts`.
    """
    out = Results(output)
    for host, found in clean_hosts(job, settings):
        out.result({"host": host, "found": found})
        kept = counted(found.kept_files, "file is", "files are")
        removed = f"{counted(found.removed_files, 'file')}, {counted(found.removed_folders, 'folder')}"
        out.say(f"{host}: {kept} as commit and content say; removed {removed}.")


def _in_the_way(open_run: str, *, supersede: bool) -> str:
    what = "loses its commit number" if supersede else "is in the way: wait for it, or give --supersede"
    return f"Run {open_run} is open and {what}."


def _remark(commit: Commit, taken_back_by: int | None, *, is_head: bool) -> str:
    parts: Iterable[str] = (
        "head" if is_head else "",
        commit.instead_of_replay or "",
        f"rolled back by {taken_back_by}" if taken_back_by is not None else "",
        "sealed" if commit.end_of_input == "seal" else "",
    )
    return ", ".join(filter(None, parts))
