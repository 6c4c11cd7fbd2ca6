"""Which host runs which task, and which hosts keep copies of its state.

Pure functions: what hosts report goes in, an assignment comes out; the same reports give the same assignment. Nothing
here knows Spark, a clock or a disk. From what all use to what is used:

- `statelib.assignment.model`: tasks, what a host reports, what it gets;
- `statelib.assignment.placing`: the assignment while it is being made;
- `statelib.assignment.standbys`, `statelib.assignment.movements`: copies of state; learners, which get a task's state
  before they get the task;
- `statelib.assignment.sticky`, `statelib.assignment.high_availability`: the two assignors.
"""

from __future__ import annotations
