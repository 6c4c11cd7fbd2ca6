"""``hindstream fork`` and ``drop``: a job that goes on from a commit of another one, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.numbers import bytes_text
from hindstream.console.results import Results
from hindstream.runs import now_ms, open_warehouse
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import CommitLog
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.errors.counted import counted
from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings


def fork_job(job: str, new: str, commit: int | None, settings: Settings, output: Output = "table") -> None:
    """Makes a fork, and says how it is run.

    Raises:
        HindstreamError: See `statelib.commits.versions.fork.fork`.
    """
    warehouse = open_warehouse(settings)
    check_job_name(new)
    head = CommitLog(warehouse, new).head_number()
    made = fork(warehouse, job, new, commit, now_ms=now_ms())
    if made.forked_from is None:
        raise InternalError("a fork was made of nothing", job=new)
    out = Results(output)
    state_bytes = sum(made.state_files().values())
    if head:
        out.say(f"{new} is there already, and nothing has changed: it has come to its commit {head}.")
    out.say(f"{new} goes on from commit {made.forked_from.commit} of {job}, and shares its {bytes_text(state_bytes)}.")
    out.say(f"Run it: hindstream run FILE.py:NAME --fork {new} [--until TIME]; drop it: hindstream drop {new}")
    out.result({"job": new, "forked_from": made.forked_from, "state_bytes": state_bytes})


def drop_job(job: str, settings: Settings, *, yes: bool, supersede: bool, output: Output = "table") -> None:
    """Drops a fork, after a question.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork.drop_fork`.
    """
    out = Results(output)
    if not yes and not typer.confirm(f"Drop {job}, with all that it has written?", err=True):
        raise typer.Exit(1)
    done = drop_fork(open_warehouse(settings), job, now_ms=now_ms(), supersede=supersede)
    topics = f", and its topics {', '.join(done.topics)}" if done.topics else ""
    out.say(f"{job} is gone: {counted(done.files, 'file')}, {bytes_text(done.size_bytes)}{topics}.")
    out.result(done)
