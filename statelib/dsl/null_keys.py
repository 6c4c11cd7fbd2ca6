"""Which repartitions drop records without a key (Kafka's ``NodesWithRelaxedNullKeyJoinDownstream``, KIP-962).

What comes behind a repartition mostly has no use for them: it drops and counts each. Left and outer joins of streams
give results of them, and a deduplication by key forwards them (KIP-655). Where such an operator is behind a
repartition, however far below and on any way, records without a key are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.operators.base import NullKeySpec
from statelib.topology.nodes import Processor, Sink, Source, senders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.topology.nodes import Node


def with_null_keys_kept(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes, of which those repartitions keep records without a key that have such an operator behind them.

    Args:
        nodes: Parents before children; a repartition topic's sink before its source.
    """
    lead_there: set[str] = set()
    topics: set[str] = set()  # whose sources do
    known = -1
    while len(lead_there) + len(topics) > known:  # where topics form a circle, a source may come before its sink
        known = len(lead_there) + len(topics)
        for node in reversed(nodes):
            match node:
                case Source() if node.internal and node.name in lead_there:
                    topics.add(node.topic)
                case Processor() if node.name in lead_there or _takes_null_keys(node):
                    lead_there.update(senders(node))
                case Sink() if node.internal and node.topic in topics:
                    lead_there.update(node.parents)
    for node in nodes:
        if isinstance(node, Sink) and node.internal and node.topic in topics:
            yield replace(node, drops_null_keys=False)
        else:
            yield node


def _takes_null_keys(node: Processor) -> bool:
    return isinstance(node.spec, NullKeySpec) and node.spec.takes_null_keys
