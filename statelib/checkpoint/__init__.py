"""Checkpoints of a task's state: saved after a slice, restored before the next, expired later.

Begin with `checkpoints`.
"""

from statelib.checkpoint.checkpoints import Checkpoints

__all__ = ["Checkpoints"]
