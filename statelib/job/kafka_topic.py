"""A topic of a Kafka cluster: its name, and the serdes of its keys and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.calls.names import check_name
from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute
from statelib.serdes import BytesSerde

if TYPE_CHECKING:
    from statelib.serdes import Serde


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic of a Kafka cluster.

    Attributes:
        name: The topic's name in Kafka.
        key: The serde of its keys.
        value: The serde of its values.
        archive: The topic archive that is a copy of the topic, or that is published to it; None: ``name``.

    Raises:
        ConfigurationError: Kafka does not allow this name.
    """

    name: str
    key: Serde = field(default_factory=BytesSerde)
    value: Serde = field(default_factory=BytesSerde)
    archive: str | None = None

    def __post_init__(self) -> None:
        """Checks the names (Kafka's ``Topic.validate``)."""
        for name in (self.name, self.archive_name):
            check_name(name, "a topic")

    @property
    def archive_name(self) -> str:
        """The name of the topic archive."""
        return self.name if self.archive is None else self.archive


def load_kafka_topics(reference: str) -> tuple[KafkaTopic, ...]:
    """Loads the topics at ``package.module:attribute`` or ``path/to/file.py:attribute``.

    The attribute is a `KafkaTopic`, several of them, or a function without parameters that returns them. Without
    ``:attribute`` it is ``topics``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no topic.
    """
    found = load_attribute(reference, "topics")
    topics = (found,) if isinstance(found, KafkaTopic) else tuple(found) if isinstance(found, (list, tuple)) else ()
    if not topics or not all(isinstance(topic, KafkaTopic) for topic in topics):
        next_step = "name a list of hindstream.KafkaTopic, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("these are no topics", topics=reference, next_step=next_step)
    return topics
