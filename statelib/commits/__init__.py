"""The run protocol: plan, (replay and) stage, audit, commit, publish, maintain.

Each phase is one function. Each can be killed at any instruction and run again, and two drivers of one job do each
other no harm: whatever decides is created only if absent.

- A run of a job (`job_definition`): `plan`, with `sources` and `planned_tasks`, `stage`, `audit`, `commit`, `fencing`,
  `publish`;
- a topology or sources that have changed: `topologies`, `evolution`, `store_differences`, `renames`,
  `renamed_changelogs`, `source_schemas`, `sink_partitions`;
- maintenance: `maintain`, `expiry`, `leftovers`, `rewriting`, `rewrite_log`, `compaction`, `changelog_lag`;
- ways back, and what others have done: `rollback`, `verify`, `republish`, `lost_plans`, `local_state`, `hold`,
  `source_rollbacks`, `changed_archives`;
- versions of a job: `fork`, `forks`, `drop_fork`, `standing`, `sink_history`; what it is called: `job_names`;
- a live application's state: `takeover`.

Begin with `plan`; `layout` says where everything lies.
"""

from statelib.commits.audit import LedgerRow, ledger_table, reconcile, record_audit
from statelib.commits.commit import commit
from statelib.commits.expiry import check_restorable, oldest_restorable
from statelib.commits.fencing import fenced
from statelib.commits.hold import check_free, read_hold, release_hold, take_hold
from statelib.commits.job_definition import JobDefinition
from statelib.commits.layout import CommitLog, JobLayout, Runs, late_topic, quarantine_topic, topic_path
from statelib.commits.leftovers import attempt_name
from statelib.commits.maintain import Maintained, Retention, maintain
from statelib.commits.plan import NothingToDo, plan
from statelib.commits.publish import Published, publish, published_through
from statelib.commits.rewriting import FilePolicy
from statelib.commits.rollback import RollbackPreview, preview_rollback, rollback
from statelib.commits.stage import read_staged, stage
from statelib.commits.verify import Verification, verify

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
