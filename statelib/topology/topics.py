"""Which topics there can be: Kafka's rules for their names, and at least one partition."""

from __future__ import annotations

from statelib.calls.names import check_name
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError


def check_topic(topic: str, node: str, partitions: int | None = None) -> None:
    """Looks whether a topic can be called that (Kafka's ``Topic.validate``), and have so many partitions.

    Args:
        topic: Its name.
        node: The node that reads or writes it.
        partitions: None: nobody has said how many.

    Raises:
        ConfigurationError: It cannot.
    """
    check_name(topic, "a topic", node=node)
    if partitions is not None and partitions < 1:
        what = f"a topic cannot have {counted(partitions, 'partition')}"
        raise ConfigurationError(what, topic=topic, node=node, next_step="give it at least one")
