"""Saves and restores a task's state, and says what of it can go."""

from statelib.checkpoint.checkpoints import Checkpoints

__all__ = ["Checkpoints"]
