"""The state of a job as data: any store as of any commit, without the job's code and without touching the job.

What is of one family of operators is in its room, in a module `snapshot`. Begin with `state`, then `store`.
"""

from statelib.snapshots.state import DEFAULT_STATE_DIR, StateSnapshot, open_state
from statelib.snapshots.store import StoreSnapshot

__all__ = ["DEFAULT_STATE_DIR", "StateSnapshot", "StoreSnapshot", "open_state"]
