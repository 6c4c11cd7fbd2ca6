"""Makes a task's state of a live application's changelogs: see `statelib.commits.run.takeover`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.changelog.import_records import import_changelog
from statelib.columns.schema_text import decode_schema
from statelib.commits.run.takeover import begun_position
from statelib.records.batch import NO_TIMESTAMP
from statelib.task.state_from_changelogs import make_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from statelib.changelog.import_records import Imported
    from statelib.described.live_format import StoreFormat
    from statelib.documents.manifests import CommittedTask, TaskPosition
    from statelib.documents.plans import Plan, PlannedTask
    from statelib.documents.topologies import StoreDescription, TopologyDescription
    from statelib.stores.backend import Backend
    from statelib.task.work import TaskSettings

    ReadChangelog = Callable[[int, int], Iterator[pa.RecordBatch]]

_TELLING = ("window", "session")
"""Stores whose changelogs tell the stream time of the operator."""

_STREAM_TIME = {"window": "stream_time", "session": "stream_time", "suppression-buffer": "stream_time",
                "join-window": "stream_time", "join-buffer": "buffer_time"}  # fmt: skip
"""By kind of store, what the operator that writes it calls the stream time by which it goes."""


@dataclass(frozen=True, slots=True)
class TaskTakeover:
    """What it takes to make the state of one task; travels to where that is done.

    Attributes:
        settings: Where to work, and in how much memory.
        plan: See `statelib.commits.run.takeover.plan_taking_over`.
        planned: The task.
        described: The topology.
        changelogs: By store, what reads a partition of its changelog up to an offset, as `import_changelog` takes it;
            a store without one begins empty.
        formats: By store, how the application writes its keys and values.
    """

    settings: TaskSettings
    plan: Plan
    planned: PlannedTask
    described: TopologyDescription
    changelogs: Mapping[str, ReadChangelog]
    formats: Mapping[str, StoreFormat] = field(default_factory=dict)

    @property
    def stores(self) -> tuple[StoreDescription, ...]:
        """Those of the task."""
        return tuple(store for store in self.described.stores if store.sub_topology == self.planned.sub_topology)

    def run(self, attempt: str) -> tuple[CommittedTask, dict[str, int]]:
        """The task, its state in files of the plan's run; and by store, how many records its changelog had.

        Args:
            attempt: Names the working directory: unique among all attempts at this.

        Raises:
            HindstreamError: See `import_changelog`; or the disk is full, or the warehouse does not answer.
        """
        imported: dict[str, Imported] = {}

        def fill(backend: Backend) -> TaskPosition:
            for store in self.stores:
                if store.name in self.changelogs:
                    imported[store.name] = self._import(store, backend)
            return self._position(imported)

        made = make_state(self.settings, self.plan, self.planned.task_id, self.stores, fill, attempt=attempt)
        return made, {name: of.records for name, of in imported.items()}

    def _import(self, store: StoreDescription, backend: Backend) -> Imported:
        return import_changelog(
            store,
            decode_schema(store.arrow_schema),
            self.changelogs[store.name](self.planned.partition, self._end_of(store)),
            backend,
            self.formats[store.name],
            semantics=self.plan.semantics or "kip",
        )

    def _end_of(self, store: StoreDescription) -> int:
        """Where its changelog ends."""
        taken = self.plan.taken_over
        return 0 if taken is None else taken.changelogs.get(store.name, {}).get(self.planned.partition, 0)

    def _position(self, imported: Mapping[str, Imported]) -> TaskPosition:
        """Where the task stands, with the clocks that its operators would have had the application not stopped."""
        begun = begun_position(self.plan, self.planned)
        clocks: dict[str, dict[str, int]] = {}
        for store in self.stores:
            of_node = clocks.setdefault(store.node, {})
            for name, time in (imported[store.name].clocks if store.name in imported else {}).items():
                of_node[name] = max(time, of_node.get(name, NO_TIMESTAMP))
        stream_time = max([begun.stream_time, *(of.get("stream_time", NO_TIMESTAMP) for of in clocks.values())])
        for store in self.stores:
            is_new = store.kind in _TELLING and not self._end_of(store)
            if store.kind in _STREAM_TIME and not is_new:
                known = self._above(store.node, clocks)
                clocks[store.node].setdefault(_STREAM_TIME[store.kind], stream_time if known is None else known)
        clocks = {node: of for node, of in clocks.items() if of}
        return begun.model_copy(update={"stream_time": stream_time, "clocks": clocks})

    def _above(self, node: str, clocks: Mapping[str, Mapping[str, int]]) -> int | None:
        """The stream time of the operators that give a node its records; None: nobody knows."""
        parents = {of.name: of.parents for of in self.described.nodes}
        known = []
        for parent in parents[node]:
            time = clocks.get(parent, {}).get("stream_time")
            known.append(self._above(parent, clocks) if time is None else time)
        return max((time for time in known if time is not None), default=None)
