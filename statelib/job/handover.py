"""What a job and a live Kafka Streams application share, so that state can move between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.commits.rewriting.compaction import ADDITIONAL_RETENTION_MS
from statelib.described.live_format import StoreFormat
from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.described.description import StoreFacts
    from statelib.documents.manifests import TaskPosition

_DEFAULT = StoreFormat()

_TIMES = ("stream_time", "store_time")
"""Clocks of a node that are times."""


@dataclass(frozen=True)
class Handover:
    """What a job and a live application share, so that state can move from either to the other.

    ::

        handover = Handover(
            "flight-delays",
            application_id="flight-delays-live",
            formats={"delays": StoreFormat(value=JsonSerde(...))},
        )

    Attributes:
        job: The job's name.
        application_id: The application's id. It is also its consumer group and the prefix of its changelog topics.
        formats: By store, how the application writes keys and values. Stores without an entry use Kafka's own serdes.
        stores: By store, the application's name for it, if that differs.
        topics: By source topic of the job, the topic's name in Kafka, if that differs.
        changelogs: By store, its changelog topic, if that is not ``<application id>-<store>-changelog``. Source topics
            that serve as changelogs need not be named if the job's topology is built with the application's
            ``topology.optimization``.
        leave_out: Stores that do not move: the other side does not have them, or begins with them empty.
        restored: Stores that a state directory leaves out, so that the application restores them: those that it has in
            memory, or makes with its own supplier (``Materialized.as(Stores.persistentKeyValueStore(...))``).
        copies_only: Whether the replayed archives must be copies that ``hindstream archive`` made, which know their
            topics. False: you promise that the archives have Kafka's own offsets; this cannot be checked.
    """

    job: str
    application_id: str
    formats: Mapping[str, StoreFormat] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    copies_only: bool = True
    changelogs: Mapping[str, str] = field(default_factory=dict)
    restored: tuple[str, ...] = ()

    def format(self, store: str) -> StoreFormat:
        """How the application writes a store's keys and values."""
        return self.formats.get(store, _DEFAULT)

    def live_store(self, store: str) -> str:
        """The application's name of a store."""
        return self.stores.get(store, store)

    def changelog(self, store: str) -> str:
        """The changelog topic of a store."""
        return self.changelogs.get(store) or f"{self.application_id}-{self.live_store(store)}-changelog"

    def kafka_topic(self, topic: str) -> str:
        """The name in Kafka of a source topic of the job."""
        return self.topics.get(topic, topic)

    def with_source_changelogs(self, topics: Mapping[str, str], *, moves: bool) -> Handover:
        """The same, where source topics serve as changelogs (Kafka's ``reuse.ktable.source.topics``).

        Args:
            topics: By store, the job's source topic. A store whose changelog is named here keeps that.
            moves: Whether the stores move all the same: they are taken over. To an application they do not, since it
                restores them from the topics.
        """
        reused = {store: self.kafka_topic(topic) for store, topic in topics.items() if store not in self.changelogs}
        leave_out = self.leave_out if moves else tuple(dict.fromkeys((*self.leave_out, *reused)))
        return replace(self, changelogs={**self.changelogs, **reused}, leave_out=leave_out)

    def check_stores(self, names: set[str]) -> None:
        """Checks that all stores named here exist.

        Raises:
            ConfigurationError: One does not.
        """
        for name in (*self.formats, *self.stores, *self.changelogs, *self.leave_out, *self.restored):
            if name not in names:
                step = f"name one of: {', '.join(sorted(names))}"
                raise ConfigurationError("the job has no such store", job=self.job, store=name, next_step=step)


@dataclass(frozen=True, slots=True)
class StoreChangelog:
    """The changelog topic that carries a store from one side to the other, and how many records it had."""

    store: str
    changelog: str
    records: int


def changelog_config(store: StoreFacts, behind_ms: int) -> dict[str, str]:
    """How Kafka Streams configures the changelog topic of a store (``InternalTopicConfig`` and its kin).

    The broker deletes and compacts by the age of timestamps, and the store by its own clock. Where that is behind the
    time of day, as after the replay of a history, the broker would take what the store still needs; so it is given as
    much more time.

    Args:
        store: The store.
        behind_ms: How far the store's clock is behind the time of day.
    """
    slack_ms = ADDITIONAL_RETENTION_MS + max(behind_ms, 0)
    if store.kind == "versioned":
        lag_ms = store.settings["history_retention_ms"] + slack_ms
        return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(lag_ms)}
    if "retention_ms" in store.settings:
        return {"cleanup.policy": "compact,delete", "retention.ms": str(store.settings["retention_ms"] + slack_ms)}
    return {"cleanup.policy": "compact"}


def behind_ms(positions: Mapping[str, TaskPosition], store: StoreFacts, now_ms: int) -> int:
    """How far a store's clock is behind the time of day, in the task where that is the furthest; 0: it has none yet.

    An idle partition's share keeps what others have let go long ago.

    Args:
        positions: Those of the job's tasks, by task id.
        store: One of its stores.
        now_ms: The time of day.
    """
    clocks: list[int] = []
    for task_id, position in positions.items():
        if TaskId.parse(task_id).sub_topology == store.sub_topology:
            of_node = position.clocks.get(store.node, {})
            clocks += [position.stream_time, *(of_node.get(name, NO_TIMESTAMP) for name in _TIMES)]
    return now_ms - min((clock for clock in clocks if clock != NO_TIMESTAMP), default=now_ms)


def load_handover(reference: str) -> Handover:
    """The handover that ``package.module:attribute`` or ``path/to/file.py:attribute`` names; without it ``handover``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no handover.
    """
    found = load_attribute(reference, "handover")
    if not isinstance(found, Handover):
        next_step = "name a hindstream.Handover, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is no handover", handover=reference, next_step=next_step)
    return found
