"""The state directory of an application that a job's state is handed over to."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from hindstream.kafka.local_state.directory import StateDirectory
from hindstream.kafka.local_state.layout import layout_of
from hindstream.kafka.producer import outgoing
from statelib.assignment.model import TaskId
from statelib.changelog.export import export_changelog, exporter_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from hindstream.kafka.local_state.directory import LocalState
    from hindstream.kafka.local_state.layout import Layout
    from hindstream.kafka.local_state.store_files import StoreFiles
    from statelib.job.handover import Handover
    from statelib.snapshots import StoreSnapshot


class HandedOverState:
    """Stores that move are filled from their changelogs, as these are read back; the others at the end.

    A store whose changelog is a source topic (``topology.optimization``) does not move, since the topic is there. It is
    filled from the job's state, which is that of the topic up to where the application goes on.

    Args:
        state_dir: Where it is written.
        handover: What is handed over.
        stores: All of the job's.
        offsets: Where the application goes on, by topic and partition.

    Raises:
        ConfigurationError: A store cannot be filled.
    """

    def __init__(
        self,
        state_dir: Path,
        handover: Handover,
        stores: Sequence[StoreSnapshot],
        offsets: Mapping[tuple[str, int], int],
    ) -> None:
        self._handover, self._offsets = handover, offsets
        self._directory = StateDirectory(state_dir, handover.application_id)
        left_out = [store for store in stores if store.name in handover.leave_out]
        self._layouts = {store.name: layout for store in stores if (layout := self._layout(store)) is not None}
        self._left_out = [store for store in left_out if store.name in self._layouts]
        self._restored = [
            store.name
            for store in stores
            if store not in left_out and (store.name not in self._layouts or self._layouts[store.name].restored)
        ]
        for store in self._left_out:  # what is refused is refused before anything is changed
            if not self._layouts[store.name].restored:
                exporter_of(store.described, handover.format(store.name))

    def begin(self, *, replace: bool) -> None:
        """Makes room: see `StateDirectory.begin`."""
        self._directory.begin(replace=replace)

    def files(self, store: StoreSnapshot, partition: int) -> AbstractContextManager[StoreFiles | None]:
        """For a task's share of a store; None: it is not on disk."""
        return self._files(store, partition) if store.name in self._layouts else nullcontext()

    def finish(self) -> LocalState:
        """Fills what is left, and moves the directory to its place."""
        for store in self._left_out:
            for partition in store.partitions:
                self._fill(store, partition)
        return self._directory.place(self._restored)

    def _layout(self, store: StoreSnapshot) -> Layout | None:
        """None: it is not on disk, or not in a task."""
        layout = layout_of(store.described)
        if layout is None or store.described.is_global:
            return None
        is_left_out, changelog = store.name in self._handover.leave_out, self._handover.changelog(store.name)
        is_of_source = all((changelog, partition) in self._offsets for partition in store.partitions)
        if store.name in self._handover.restored or (is_left_out and not is_of_source):
            return layout.to_be_restored()
        return layout

    def _fill(self, store: StoreSnapshot, partition: int) -> None:
        changelog = self._handover.changelog(store.name)
        offset = self._offsets.get((changelog, partition), 0)
        with self._files(store, partition) as files:
            if not self._layouts[store.name].restored:
                for batch in export_changelog(store, partition, self._handover.format(store.name)):
                    for record in outgoing(*(batch[name] for name in ("key", "value", "timestamp", "headers"))):
                        files.add(record)
            files.finish(changelog, partition, offset - 1 if offset else None)

    def _files(self, store: StoreSnapshot, partition: int) -> StoreFiles:
        task = TaskId(store.described.store.sub_topology, partition)
        return self._directory.store(str(task), self._handover.live_store(store.name), self._layouts[store.name])
