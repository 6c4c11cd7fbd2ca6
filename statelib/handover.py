"""What a live Kafka Streams application takes over of a job: its name, and how it writes what the stores hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.changelog.formats import StoreFormat
from statelib.commits.compaction import ADDITIONAL_RETENTION_MS
from statelib.errors import ConfigurationError
from statelib.user_code import load_attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.manifests import StoreDescription

_DEFAULT = StoreFormat()


@dataclass(frozen=True)
class Handover:
    """A job's state for a live application.

    ::

        handover = Handover(
            "flight-delays",
            application_id="flight-delays-live",
            formats={"delays": StoreFormat(value=JsonSerde(...))},
        )

    Attributes:
        job: The job's name.
        application_id: The application's; also its consumer group, and what its changelog topics begin with.
        formats: By store, how the application writes its keys and values; others are as Kafka's own serdes write them.
        stores: By store, what the application calls it, where that is another name.
        topics: By source topic of the job, what it is called in Kafka, where that is another name.
        leave_out: Stores that the application does not have, or begins empty.
    """

    job: str
    application_id: str
    formats: Mapping[str, StoreFormat] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()

    def format(self, store: str) -> StoreFormat:
        """How a store's keys and values are written."""
        return self.formats.get(store, _DEFAULT)

    def changelog(self, store: str) -> str:
        """The changelog topic of a store."""
        return f"{self.application_id}-{self.stores.get(store, store)}-changelog"

    def kafka_topic(self, topic: str) -> str:
        """A source topic of the job in Kafka."""
        return self.topics.get(topic, topic)

    def check_stores(self, names: set[str]) -> None:
        """Checks that what is said of stores is of these.

        Raises:
            ConfigurationError: There is no such store.
        """
        for name in (*self.formats, *self.stores, *self.leave_out):
            if name not in names:
                step = f"name one of: {', '.join(sorted(names))}"
                raise ConfigurationError("the job has no such store", job=self.job, store=name, next_step=step)


def changelog_config(store: StoreDescription, behind_ms: int) -> dict[str, str]:
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


def load_handover(reference: str) -> Handover:
    """The handover that ``package.module:attribute`` or ``path/to/file.py:attribute`` names; without it ``handover``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no handover.
    """
    found = load_attribute(reference, "handover")
    if not isinstance(found, Handover):
        next_step = "name a statelib.Handover, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is no handover", handover=reference, next_step=next_step)
    return found
