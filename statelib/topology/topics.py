"""What nodes, their stores and topics can be called: Kafka's rules; and that a topic has at least one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.calls.names import check_name
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.topology.nodes import Processor, Sink

if TYPE_CHECKING:
    from statelib.topology.nodes import Node


def check_names(node: Node, **where: object) -> None:
    """Looks whether a node, its stores and its topics can be called that, and have so many partitions.

    Args:
        node: The node.
        where: See `HindstreamError`: the line, for instance.

    Raises:
        ConfigurationError: They cannot.
    """
    check_name(node.name, "a node", **where)
    if isinstance(node, Processor):
        for store in node.spec.state_stores():
            check_name(store.name, "a store", **where, node=node.name)
    else:
        for topic in node.topics:
            check_topic(topic, node.name, node.partitions if isinstance(node, Sink) else None, **where)


def check_topic(topic: str, node: str, partitions: int | None = None, **where: object) -> None:
    """Looks whether a topic can be called that (Kafka's ``Topic.validate``), and have so many partitions.

    Args:
        topic: Its name.
        node: The node that reads or writes it.
        partitions: None: nobody has said how many.
        where: See `check_names`.

    Raises:
        ConfigurationError: It cannot.
    """
    check_name(topic, "a topic", **where, node=node)
    if partitions is not None and partitions < 1:
        what = f"a topic cannot have {counted(partitions, 'partition')}"
        raise ConfigurationError(what, **where, topic=topic, node=node, next_step="give it at least one")
