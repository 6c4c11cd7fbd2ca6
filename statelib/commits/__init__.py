"""The run protocol: plan, (replay and) stage, audit, commit, publish, maintain.

Each phase is one function. Each can be killed at any instruction and run again, and two drivers of one job do each
other no harm: whatever decides is created only if absent.

- `run`: a run's plan, what it staged, its audit, its commit; `publication`: what its readers get;
- `sources` and `topologies`: what a job reads, and what it is, may have changed since its last run;
- `versions`: forks, promotions, and the way back to a commit;
- `maintenance`, and the files that it merges: `rewriting`.

What all of these need stands beside them. Begin with `run.plan`; `layout` says where everything lies.
"""

from statelib.commits.expiry import check_restorable, oldest_restorable
from statelib.commits.fencing import fenced
from statelib.commits.hold import check_free, read_hold, release_hold, take_hold
from statelib.commits.job_definition import JobDefinition
from statelib.commits.layout import CommitLog, JobLayout, Runs, late_topic, quarantine_topic, topic_path
from statelib.commits.maintenance.leftovers import attempt_name
from statelib.commits.maintenance.maintain import Maintained, Retention, maintain
from statelib.commits.maintenance.verify import Verification, verify
from statelib.commits.publication.publish import Published, publish, published_through
from statelib.commits.rewriting.rewrite import FilePolicy
from statelib.commits.run.audit import LedgerRow, ledger_table, reconcile, record_audit
from statelib.commits.run.commit import commit
from statelib.commits.run.plan import NothingToDo, plan
from statelib.commits.run.stage import read_staged, stage
from statelib.commits.versions.rollback import RollbackPreview, preview_rollback, rollback

__all__ = [
    "CommitLog",
    "FilePolicy",
    "JobDefinition",
    "JobLayout",
    "LedgerRow",
    "Maintained",
    "NothingToDo",
    "Published",
    "Retention",
    "RollbackPreview",
    "Runs",
    "Verification",
    "attempt_name",
    "check_free",
    "check_restorable",
    "commit",
    "fenced",
    "late_topic",
    "ledger_table",
    "maintain",
    "oldest_restorable",
    "plan",
    "preview_rollback",
    "publish",
    "published_through",
    "quarantine_topic",
    "read_hold",
    "read_staged",
    "reconcile",
    "record_audit",
    "release_hold",
    "rollback",
    "stage",
    "take_hold",
    "topic_path",
    "verify",
]
