"""Runs one sub-topology over one slice: what a Spark worker does."""

from statelib.task.run import run_task
from statelib.task.types import topic_types
from statelib.task.work import TaskSettings, TaskWork

__all__ = ["TaskSettings", "TaskWork", "run_task", "topic_types"]
