"""Which host runs which task, and which hosts keep copies of its state.

Pure functions: what hosts report goes in, an assignment comes out; the same reports give the same assignment. Nothing
here knows Spark, a clock or a disk.

- `statelib.assignment.model`: tasks, what a host reports, what it gets;
- `statelib.assignment.sticky`, `statelib.assignment.high_availability`: the two assignors;
- `statelib.assignment.balance`, `statelib.assignment.standbys`, `statelib.assignment.movements`: steps of these:
  evening out; copies of state; learners, which get a task's state before they get the task;
- `statelib.assignment.placing`: the assignment while it is being made;
- `statelib.assignment.subscription_info`, `statelib.assignment.assignment_info`: reports and assignments in
  Kafka's bytes, made of the primitives in `statelib.assignment.wire`.

Begin with `model`, then one of the assignors.
"""

from __future__ import annotations
