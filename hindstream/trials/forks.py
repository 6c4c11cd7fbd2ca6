"""The forks of trials: made, and dropped whatever happens, also by the next trial if a process was killed."""

from __future__ import annotations

import logging
import os
import shutil
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hindstream.runs import now_ms, open_warehouse
from statelib.commits.forks import forked_from, forks_of, holder_of, is_being_dropped, read_reference
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.trials import old_name
from statelib.documents.upkeep import Trial as TrialMark
from statelib.errors.kinds import HindstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.commits.versions.trials import Trial
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)

FORK_PREFIX = "try-"
"""How the names of forks begin that are dropped when they have been compared."""


def begin(trial: Trial, settings: Settings, *, keep: bool = False, outlives_process: bool = False) -> None:
    """Makes the forks. A repeat changes nothing.

    Args:
        trial: What is tried.
        settings: See `Settings`.
        keep: Whether the version that is tried stays, as any fork.
        outlives_process: Whether another process goes on with it, as in Airflow, and drops the forks.

    Raises:
        HindstreamError: See `statelib.commits.versions.fork`.
    """
    warehouse = open_warehouse(settings)
    process = None if outlives_process else os.getpid()
    of_trial = TrialMark(
        host=socket.gethostname(), process=process, began_at_ms=now_ms(), sample_keys=trial.sample_keys
    )
    for side in trial.sides:
        mark = None if keep and side is trial.new else of_trial
        if side.commit:
            fork(warehouse, side.job, side.fork, side.commit, now_ms=now_ms(), trial=mark)
        else:
            fork_from_beginning(warehouse, side.job, side.fork, trial=mark)


def drop(trial: Trial, settings: Settings, *, keep: bool = False) -> None:
    """Drops the forks, with all that they have written. A repeat goes on where it has ended.

    Args:
        trial: What was tried.
        settings: See `Settings`.
        keep: Whether the version that was tried stays.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse = open_warehouse(settings)
    for side in reversed(trial.sides[1:] if keep else trial.sides):
        if _is_there(warehouse, side.job, side.fork):
            _drop(warehouse, side.fork, settings)


def drop_named(fork: str, settings: Settings) -> None:
    """Drops the forks of the trial whose fork has this name, as far as they have been made.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse = open_warehouse(settings)
    for name in (old_name(fork), fork):
        if holder_of(warehouse, name) is not None or is_being_dropped(warehouse, name):
            _drop(warehouse, name, settings)


@contextmanager
def dropped_at_the_end(trial: Trial, settings: Settings, *, keep: bool = False) -> Iterator[None]:
    """Whatever happens inside, the forks are dropped behind it; ``keep``: but for the version that is tried.

    Raises:
        HindstreamError: They cannot be dropped; if something has gone wrong before, only the log says so.
    """
    try:
        yield
    except BaseException:
        try:
            drop(trial, settings, keep=keep)
        except HindstreamError as error:
            _log.warning("the forks of the trial are still there: %s", error)
        raise
    drop(trial, settings, keep=keep)


def drop_dead_trials(job: str, settings: Settings) -> list[str]:
    """Drops forks of trials of a job that were killed on this host; gives their names.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse, dropped = open_warehouse(settings), []
    of: str | None = job
    while of is not None:
        for name in forks_of(warehouse, of):
            reference = read_reference(warehouse, of, name)
            if reference is not None and reference.trial is not None and _is_dead(reference.trial):
                _drop(warehouse, name, settings)
                dropped.append(name)
        base = forked_from(warehouse, of)
        of = None if base is None else base.job
    for name in _half_dropped(warehouse):
        _drop(warehouse, name, settings)
        dropped.append(name)
    return dropped


def _half_dropped(warehouse: Storage) -> list[str]:
    """Forks of trials of which nothing but the record of the drop is left."""
    names = (path.rpartition("/")[2] for path in warehouse.folders("jobs"))
    return [
        name
        for name in names
        if name.startswith(FORK_PREFIX) and is_being_dropped(warehouse, name) and holder_of(warehouse, name) is None
    ]


def _is_there(warehouse: Storage, job: str, name: str) -> bool:
    return read_reference(warehouse, job, name) is not None or is_being_dropped(warehouse, name)


def _is_dead(trial: TrialMark) -> bool:
    if trial.process is None or trial.host != socket.gethostname():
        return False
    try:
        os.kill(trial.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _drop(warehouse: Storage, name: str, settings: Settings) -> None:
    drop_fork(warehouse, name, now_ms=now_ms(), supersede=True)
    for kind in ("cache", "attempts", "inspect", "copies"):  # see `statelib.commits.local_state`
        shutil.rmtree(settings.local_state_dir / kind / name, ignore_errors=True)
