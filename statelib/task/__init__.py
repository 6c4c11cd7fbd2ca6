"""Runs one sub-topology over one slice: what a Spark worker does.

Begin with `run`; `graph` makes operators of nodes.
"""

from statelib.task.circle import run_circle
from statelib.task.observers import NodeSeconds
from statelib.task.run import run_task
from statelib.task.stages import Stages, kept, replay_here
from statelib.task.topology_description import describe_topology
from statelib.task.type_inference import forwarded_types, topic_types
from statelib.task.work import TaskSettings, TaskWork

__all__ = [
    "NodeSeconds",
    "Stages",
    "TaskSettings",
    "TaskWork",
    "describe_topology",
    "forwarded_types",
    "kept",
    "replay_here",
    "run_circle",
    "run_task",
    "topic_types",
]
