"""What a user can do about an error of a task that nobody has foreseen."""

from __future__ import annotations

from statelib.errors.exhausted import is_exhaustion, out_of_memory
from statelib.errors.kinds import HindstreamError, InternalError, RetryableError


def unforeseen(error: Exception, task_id: str, where: str) -> HindstreamError:
    """An error of the system, or a defect of ours.

    Args:
        error: It.
        task_id: The task that has raised it.
        where: Where its traceback is to be found.
    """
    what = f"a task failed with {type(error).__name__}: {error}"
    if is_exhaustion(error):
        return out_of_memory(error, task=task_id)
    if isinstance(error, OSError):
        step = "look at the disk or network of the host, and run it again"
        return RetryableError(what, task=task_id, next_step=step)
    return InternalError(what, task=task_id, next_step=f"look at the traceback ({where}), and report it")
