"""Where a job's tasks run, and where copies of their state are kept: what `statelib.assignment` needs and says.

A run is one round: hosts report what their disks hold, an assignor answers, the cluster carries it out as far as it
can. Nothing rests on that: a task that runs elsewhere fetches its state and gives the same bytes.

- `statelib.placement.process`: which host a state directory makes of a machine;
- `statelib.placement.holdings`: what a host reports;
- `statelib.placement.round`: from reports to an assignment, and why tasks move;
- `statelib.placement.copies`: standbys and learners brought up to a commit;
- `statelib.placement.documents`: what is stored of it with each run.

Begin with `round`.
"""

from __future__ import annotations
