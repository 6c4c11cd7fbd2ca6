"""The compiled plan of a job: nodes, sub-topologies, fingerprint, description."""

from statelib.topology.describe import describe
from statelib.topology.nodes import Consumed, Node, Processor, Sink, Source
from statelib.topology.topology import SubTopology, Topology, addressed_name

__all__ = ["Consumed", "Node", "Processor", "Sink", "Source", "SubTopology", "Topology", "addressed_name", "describe"]
