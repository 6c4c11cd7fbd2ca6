"""The state of a job at a commit: its stores, each of them as data.

All input is in the warehouse: the commit, the description of the topology that made it
(`statelib.documents.topologies.TopologyDescription`), and the tasks' checkpoints. Only the checkpoints that are read
are fetched.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from statelib.columns.schema_text import decode_schema
from statelib.commits import CommitLog, Runs, check_restorable
from statelib.described.description import Described
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.snapshot import results_of
from statelib.snapshots.kinds import views_of
from statelib.snapshots.restored import RestoredTasks
from statelib.snapshots.store import StoreSnapshot
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from types import TracebackType
    from typing import Self

    from statelib.documents.manifests import Commit, CommittedTask
    from statelib.documents.topologies import TopologyDescription

DEFAULT_STATE_DIR = ".hindstream"
"""Of the setting ``state_dir``."""


@overload
def open_state(
    warehouse: str | PathLike[str],
    job: str,
    store: None = None,
    *,
    commit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    state_dir: str | PathLike[str] = DEFAULT_STATE_DIR,
) -> StateSnapshot: ...
@overload
def open_state(
    warehouse: str | PathLike[str],
    job: str,
    store: str,
    *,
    commit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    state_dir: str | PathLike[str] = DEFAULT_STATE_DIR,
) -> StoreSnapshot: ...
def open_state(
    warehouse: str | PathLike[str],
    job: str,
    store: str | None = None,
    *,
    commit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    state_dir: str | PathLike[str] = DEFAULT_STATE_DIR,
) -> StateSnapshot | StoreSnapshot:
    """Opens the state of a job at a commit as data. It needs no code of the job and does not touch the job.

    ::

        with hindstream.open_state("warehouse", "flight-delays") as state:
            for store in state.stores:
                print(store.name, store.kind, store.schema())
            weather = state.store("weather-by-origin")
            weather.read(where={"key": "JFK"}).to_pylist()
            for batch in weather.batches("history", columns=["key", "valid_from"]):
                ...

    Args:
        warehouse: Root of all durable data: a directory or URL.
        job: The job's name.
        store: The name of one store; None: all stores.
        commit: The commit's number; None: the newest.
        storage_options: Options of the object store, as in the setting of that name.
        state_dir: A local folder for fetched files, as in the setting of that name. State files that jobs on this host
            have cached there are reused. Closing the snapshot removes everything fetched except the cache.

    Returns:
        A `StateSnapshot` of all stores, or a `StoreSnapshot` of the named one. Close it with ``close()`` or use
        ``with``.

    Raises:
        ConfigurationError: There is no such job, commit or store; the commit's state has expired; or the commit was
            made by a release that did not write descriptions of topologies yet.
    """
    storage = Storage(str(warehouse), storage_options)
    log = CommitLog(storage, job)
    newest = log.head_number()
    wanted = newest if commit is None else commit
    if not 1 <= wanted <= newest:
        what = "the job has no commit yet" if not newest else f"the job has the commits 1 to {newest}"
        raise ConfigurationError(what, job=job, commit=commit, next_step=f"hindstream status {job}")
    check_restorable(storage, job, wanted)
    made = log.read(wanted)
    topology = Runs(storage, job).topology(made.fingerprint)
    if topology is None:
        raise ConfigurationError(
            "the commit has no description of its stores: an older release made it",
            job=job,
            commit=wanted,
            next_step="run one more slice of the job with this release, and ask for its commit",
        )
    snapshot = StateSnapshot(storage, made, topology, Path(state_dir))
    if store is None:
        return snapshot
    try:
        return snapshot.store(store)
    except ConfigurationError:
        snapshot.close()
        raise


class StateSnapshot:
    """The state of a job at a commit, made by `open_state`. Several threads may read from it.

    It corresponds to interactive queries of a live Kafka Streams application (KIP-67), but for any commit.
    """

    def __init__(self, warehouse: Storage, commit: Commit, topology: TopologyDescription, state_dir: Path) -> None:
        self._commit = commit
        self._topology = topology
        self._restored = RestoredTasks(warehouse, commit, state_dir)

    def __repr__(self) -> str:
        return f"StateSnapshot({self.job!r}, commit={self.commit}, stores={[store.name for store in self.stores]})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes what was fetched, except the cache of state files. A second call does nothing."""
        self._restored.close()

    @property
    def job(self) -> str:
        """The job's name."""
        return self._commit.job

    @property
    def commit(self) -> int:
        """The commit's number."""
        return self._commit.commit

    @cached_property
    def stores(self) -> tuple[StoreSnapshot, ...]:
        """All stores, in the order of the topology."""
        schemas = {store.name: decode_schema(store.arrow_schema) for store in self._topology.stores}
        nodes = {node.name: node for node in self._topology.nodes}
        tasks = Counter(int(task_id.partition("_")[0]) for task_id in self._commit.tasks)
        found = []
        for store in self._topology.stores:
            siblings = {s.name: (s, schemas[s.name]) for s in self._topology.stores if s.node == store.node}
            semantics = self._commit.semantics or "kip"
            described = Described(
                store, schemas[store.name], siblings, semantics, nodes, tasks, results_of(store.settings)
            )
            shares = self._tasks(described)
            found.append(StoreSnapshot(described, views_of(described), shares, self._restored, self.close))
        return tuple(found)

    def store(self, name: str) -> StoreSnapshot:
        """One store.

        Raises:
            ConfigurationError: There is no store of this name; the error lists all names.
        """
        for store in self.stores:
            if store.name == name:
                return store
        known = ", ".join(store.name for store in self.stores)
        step = f"one of: {known}" if known else "the job is stateless"
        raise ConfigurationError("the job has no such store", job=self.job, store=name, next_step=step)

    def _tasks(self, described: Described) -> dict[int, tuple[str, CommittedTask]]:
        """The tasks that have a share of the store, by partition."""
        found = {}
        for task_id, task in self._commit.tasks.items():
            sub, _, partition = task_id.partition("_")
            if int(sub) == described.store.sub_topology:
                found[int(partition)] = task_id, task
        in_order = sorted(found.items())
        return dict(in_order[:1] if described.is_global else in_order)
