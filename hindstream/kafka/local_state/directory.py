"""A whole directory of an application, written beside its place and moved there in one step.

::

    <state.dir>/.<application id>.part/    while it is written; what is left of it is deleted by the next try
    <state.dir>/<application id>/          the tasks: see `hindstream.kafka.local_state.layout`

Of the application's own files there is neither ``.lock`` nor ``kafka-streams-process-metadata``: each host makes its
own, and two hosts with one process id would be taken for one.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.kafka.local_state.store_files import StoreFiles
from hindstream.kafka.streams_directory import StreamsDirectory
from statelib.checkpoint.local_errors import local_errors
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hindstream.kafka.local_state.layout import Layout


@dataclass(frozen=True, slots=True)
class LocalState:
    """A directory that was written.

    Attributes:
        path: The application's directory, whose tasks are to be copied to its hosts.
        tasks: By task's id, the bytes of its files.
        restored: The stores that the application restores from their changelogs all the same.
    """

    path: str
    tasks: dict[str, int]
    restored: tuple[str, ...]


class StateDirectory:
    """The directory of an application that has not begun.

    Args:
        state_dir: Where it is written: what the application's ``state.dir`` is, or what its hosts are given copies of.
        application_id: The application's.
    """

    def __init__(self, state_dir: Path, application_id: str) -> None:
        self._live = StreamsDirectory(state_dir, application_id)
        self._place = state_dir / application_id
        self._part = state_dir / f".{application_id}.part"

    def begin(self, *, replace: bool) -> None:
        """Makes room; ``replace``: local state that is there is deleted.

        Raises:
            ConfigurationError: There is local state of the application; or an instance runs in it; or this user may
                not write there.
        """
        self._live.check_free()
        with local_errors("make room for the application's directory", self._place):
            if self._place.exists() and any(self._place.iterdir()):
                if not replace:
                    what = "there is local state of the application already"
                    advice = "name another folder, or give --replace, which deletes it"
                    raise ConfigurationError(what, directory=self._place, next_step=advice)
                shutil.rmtree(self._place)
            if self._part.exists():
                shutil.rmtree(self._part)
            self._part.mkdir(parents=True)

    def store(self, task_id: str, store: str, layout: Layout) -> StoreFiles:
        """A task's share of a store, to be filled; see `StoreFiles`."""
        return StoreFiles(self._part / task_id, store, layout)

    def place(self, restored: Iterable[str]) -> LocalState:
        """Moves what was written to where it belongs.

        Args:
            restored: The stores that the application restores all the same.

        Raises:
            ConfigurationError: Somebody else has written there meanwhile.
        """
        with local_errors("put the application's directory into its place", self._place):
            sizes = {task.name: _size(task) for task in sorted(self._part.iterdir())}
            step("directory.before-rename")
            self._part.rename(self._place)
        step("directory.placed")
        return LocalState(str(self._place), sizes, tuple(restored))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
