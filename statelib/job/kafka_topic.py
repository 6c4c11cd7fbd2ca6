"""A topic of a Kafka cluster: its name, and the serdes of its keys and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.calls.names import check_given_name
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
            check_given_name(name, "a topic")

    @property
    def archive_name(self) -> str:
        """The name of the topic archive."""
        return self.name if self.archive is None else self.archive
