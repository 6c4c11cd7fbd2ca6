"""The compiled plan of a job: nodes, sub-topologies, fingerprint, description (``TopologyDescription``).

Begin with `topology`.
"""

from statelib.topology.lowering import addressed_name
from statelib.topology.nodes import Consumed, Node, Processor, Sink, Source
from statelib.topology.timestamp_extractors import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    TimestampExtractor,
    UsePartitionTimeOnInvalidTimestamp,
)
from statelib.topology.topology import SubTopology, Topology, describe

__all__ = [
    "Consumed",
    "FailOnInvalidTimestamp",
    "LogAndSkipOnInvalidTimestamp",
    "Node",
    "Processor",
    "Sink",
    "Source",
    "SubTopology",
    "TimestampExtractor",
    "Topology",
    "UsePartitionTimeOnInvalidTimestamp",
    "addressed_name",
    "describe",
]
