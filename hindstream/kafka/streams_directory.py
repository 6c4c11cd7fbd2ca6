"""The local state of a Kafka Streams application on this host: what its ``state.dir`` holds (``StateDirectory``).

::

    <state.dir>/<application id>/.lock                     locked by an instance that runs
    <state.dir>/<application id>/<task>/.checkpoint        how far each store of the task has come
    <state.dir>/<application id>/<task>/rocksdb/<store>/   a plain or a versioned store
"""

from __future__ import annotations

import fcntl
import re
import shutil
from typing import TYPE_CHECKING

from statelib.checkpoint.local_errors import local_errors
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_TASK = re.compile(r"\d+_(?P<partition>\d+)")


class StreamsDirectory:
    """The application's directory; it need not be there.

    Args:
        state_dir: The application's setting ``state.dir``.
        application_id: The application's.
    """

    def __init__(self, state_dir: Path, application_id: str) -> None:
        self._root = state_dir / application_id

    def check_free(self) -> None:
        """Makes sure that no instance of the application has it open.

        Raises:
            ConfigurationError: One has.
        """
        lock = self._root / ".lock"
        if not lock.exists():
            return
        with local_errors("look at the application's lock", lock), lock.open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as Java's FileChannel.tryLock
            except BlockingIOError:
                what = "an instance of the application is running in this directory"
                raise ConfigurationError(what, file=self._root, next_step="stop it") from None
            fcntl.lockf(file, fcntl.LOCK_UN)

    def stores(self, store: str) -> dict[int, Path]:
        """The directories of a store, by partition."""
        return {partition: task / "rocksdb" / store for partition, task in self._tasks(store).items()}

    def delete_tasks(self, store: str) -> list[str]:
        """Deletes the tasks that have a store, all their stores: ``.checkpoint`` would speak of what is gone.

        Returns:
            The tasks' ids.

        Raises:
            ConfigurationError: An instance is at work; or this user may not delete them.
        """
        self.check_free()
        tasks = sorted(self._tasks(store).values())
        for task in tasks:
            with local_errors("delete the local state", task):
                shutil.rmtree(task)
        return [task.name for task in tasks]

    def _tasks(self, store: str) -> dict[int, Path]:
        found = {}
        for path in self._root.glob(f"*/rocksdb/{store}"):
            task = path.parent.parent
            if match := _TASK.fullmatch(task.name):
                found[int(match["partition"])] = task
        return found
