"""Sixth phase: removes what nobody can need any more, and merges small files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hindstream.console.numbers import bytes_text
from hindstream.lineage.reported import reported
from hindstream.runs import file_policy, now_ms, open_warehouse, retention
from hindstream.spark.phases.command import phase_main
from hindstream.spark.session.session import may_be_cluster
from statelib.checkpoint.scratch import remove_dead
from statelib.commits import maintain
from statelib.commits.local_state import readers_folder
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.commits import Maintained
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)


@reported("maintain")
def run(job: Job, settings: Settings, run_id: str | None = None) -> Maintained:  # noqa: ARG001
    """Expires old checkpoints, and what dead runs and, on this host, dead readers left behind; merges small files.

    On a cluster, hosts that keep copies of tasks' state get the newest commit's
    (`hindstream.spark.placement.standbys`).

    Raises:
        HindstreamError: See `statelib.commits.maintenance.maintain`.
    """
    done = maintain(
        open_warehouse(settings), job.name, retention(settings), now_ms=now_ms(), files=file_policy(settings)
    )
    if done.merged_files:
        _log.info("%s: merged %s of topics into %d", job.name, counted(done.merged_files, "file"), done.merged_into)
    if done.deleted_files:
        removed = counted(done.deleted_files, "file")
        _log.info("%s: removed %s (%s)", job.name, removed, bytes_text(done.deleted_bytes))
    if done.skipped:
        _log.info("%s: %s", job.name, done.skipped)
    if settings.engine == "spark" and may_be_cluster(settings):
        from hindstream.spark.placement import standbys  # noqa: PLC0415 - Spark: half a second

        standbys.after_commit(job.name, settings)
    remove_dead(readers_folder(settings.local_state_dir, job.name))
    return done


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/maintain.py``: ``--job FILE.py:NAME [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Removes what nobody can need any more.")
