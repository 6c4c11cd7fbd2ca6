"""Which topics there can be: Kafka's rules for their names, and at least one partition."""

from __future__ import annotations

import re

from statelib.errors import ConfigurationError

_LEGAL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


def check_topic(topic: str, node: str, partitions: int | None = None) -> None:
    """Looks whether a topic can be called that (Kafka's ``Topic.validate``), and have so many partitions.

    Args:
        topic: Its name.
        node: The node that reads or writes it.
        partitions: None: nobody has said how many.

    Raises:
        ConfigurationError: It cannot.
    """
    if not _LEGAL.fullmatch(topic):
        raise ConfigurationError(
            f"{topic!r} is no name of a topic",
            node=node,
            next_step="use up to 249 letters, digits, dots, underscores and hyphens, and not dots alone",
        )
    if partitions is not None and partitions < 1:
        what = f"a topic cannot have {partitions} partitions"
        raise ConfigurationError(what, topic=topic, node=node, next_step="give it at least one")
