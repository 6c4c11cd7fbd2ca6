"""Makes a fork's answers those of its job, by one commit.

The fork stands on a commit of the job from before the fault. A corrected topology, run as the fork, has replayed what
the job has replayed since, to the very same offsets. The job's next commit then has the state and the positions of the
fork, and, in the sinks, the records that correct what the job had written (`statelib.repair.corrections`). What follows
is a job that might never have been wrong, and readers that follow it see only what is different.

It is a run with a plan, an audit that tells the difference, and a commit. Files of the fork's state are copied into the
job's folder under the run's name, so nothing of the job needs the fork afterwards. A call that was stopped is given
again; what it has copied and written is used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.hold import check_free
from statelib.commits.layout import CommitLog, Runs, late_topic, quarantine_topic, run_id
from statelib.commits.publication.lost_plans import ensure_plan
from statelib.commits.publication.publish import publish
from statelib.commits.standing import standing_commit
from statelib.commits.stored_files import check_state_stored
from statelib.documents.manifests import Audit, Commit, CommittedTask, StateFile, StateManifest
from statelib.documents.plans import Plan, RepairedBy, made_again
from statelib.errors.fault_points import step
from statelib.repair.corrected import corrected_sinks, described_for_job, job_topic, written_offsets
from statelib.repair.repairable import check_fork, check_no_other_run, check_topologies
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.comparison.matches import Resources
    from statelib.documents.manifests import AuditCheck
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair has done.

    Attributes:
        commit: The job's new commit.
        records: How many records correct each sink; 0: it was right.
        checks: What is different, sink by sink, as in the audit.
    """

    commit: Commit
    records: Mapping[str, int]
    checks: tuple[AuditCheck, ...]


def repair(
    warehouse: Storage,
    job: str,
    fork: str,
    resources: Resources,
    *,
    attempt: str,
    now_ms: int,
    supersede: bool = False,
    holder: str | None = None,
    end_ms: int | None = None,
) -> Repaired:
    """Makes the newest commit of a fork the job's, publishes what corrects its sinks; a repeat changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        fork: A fork of it that has replayed what the job has, to the same offsets.
        resources: What the comparison of the sinks may use.
        attempt: Unique among all attempts at this repair: letters, digits, ``-`` and ``_``.
        now_ms: The wall clock, for the commit's ``created_at_ms``.
        supersede: Whether to take the commit number of a run that is open.
        holder: By which name the caller holds the job; None: it does not (`statelib.commits.hold`).
        end_ms: When the fault ended, or the interval that is repaired: the audit tells how many corrections are of a
            later time. None: it does not.

    Raises:
        ConfigurationError: There is no such fork, it has not come as far as the job or further; its topology has other
            tasks, or values other fields; the job keeps changelogs; a run is open, or somebody holds the job.
        CorruptedDataError: A file of the fork's state is missing.
        FencedError: Another run was quicker to commit.
    """
    check_free(warehouse, job, holder)
    head, made = standing_commit(warehouse, job), standing_commit(warehouse, fork)
    by = RepairedBy(job=fork, commit=made.commit)
    publish(warehouse, job)
    if head.repaired_by == by and _is_of(made, head):
        return _done(warehouse, head)
    check_fork(warehouse, head, made)
    check_no_other_run(warehouse, head, by, supersede=supersede)
    publish(warehouse, fork)
    described = check_topologies(warehouse, head, made)
    check_state_stored(warehouse, made, "run the fork anew")
    runs = Runs(warehouse, job)
    plan = runs.settle(
        _plan(warehouse, head, made, by, now_ms), lambda last: last.repaired_by == by and _is_of(made, last), "repair"
    )
    of_job = described_for_job(described, fork)
    warehouse.put_if_absent(runs.layout.topology(made.fingerprint), of_job.encode())
    states = {task_id: _own_state(warehouse, plan, task_id, task, fork) for task_id, task in made.tasks.items()}
    step("repair.state-copied")
    files, checks = corrected_sinks(warehouse, plan, head, made, described, resources, attempt, end_ms)
    step("repair.corrected")
    audit = Audit(run_id=plan.run_id, success=True, checks=checks, data_docs=None, seconds=0.0)
    warehouse.put_if_absent(runs.layout.audit(plan.run_id), audit.encode())
    step("repair.audited")
    written = written_offsets(head, fork, described, files)
    new = made_again(
        head,
        commit=plan.commit,
        run_id=plan.run_id,
        fingerprint=made.fingerprint,
        sources=made.sources,
        tasks={
            task_id: CommittedTask(state=states[task_id], position=task.position, written=written[task_id])
            for task_id, task in made.tasks.items()
        },
        sinks=files,
        created_at_ms=now_ms,
        repaired_by=by,
    )
    standing = CommitLog(warehouse, job).claim(new, "repair")
    publish(warehouse, job)
    return _done(warehouse, standing)


def _is_of(made: Commit, begun: Commit | Plan) -> bool:
    """Whether a repair was of this very commit of a fork: another fork may have got the name since."""
    return made.created_at_ms <= begun.created_at_ms


def _done(warehouse: Storage, standing: Commit) -> Repaired:
    audit = Runs(warehouse, standing.job).audit(standing.run_id)
    checks = audit.checks if audit is not None else ()
    records = Counter({check.topic: 0 for check in checks})
    for sink in standing.sinks:
        records[sink.topic] += sink.file.rows
    return Repaired(standing, dict(sorted(records.items())), checks)


def _plan(warehouse: Storage, head: Commit, made: Commit, by: RepairedBy, now_ms: int) -> Plan:
    for commit in (head, made):
        ensure_plan(warehouse, commit)
    before, of_fork = Runs(warehouse, head.job).plan_of(head), Runs(warehouse, made.job).plan_of(made)
    aside = {late_topic(made.job), quarantine_topic(made.job)}
    new = {job_topic(topic, made.job): n for topic, n in of_fork.sink_partitions.items() if topic not in aside}
    return Plan(
        job=head.job,
        run_id=run_id(head.commit + 1, 1),
        commit=head.commit + 1,
        fingerprint=made.fingerprint,
        until_ms=head.until_ms,
        end_of_input=head.end_of_input,
        semantics=head.semantics,
        sources=made.sources,
        tasks=(),
        sink_partitions=new | before.sink_partitions,
        created_at_ms=now_ms,
        repaired_by=by,
    )


def _own_state(warehouse: Storage, plan: Plan, task_id: str, task: CommittedTask, fork: str) -> StateManifest:
    """A task's state of the fork as files of the job's: what the fork has made is copied."""

    def own(file: StateFile) -> StateFile:
        if file.job is not None:
            return file.model_copy(update={"job": None if file.job == plan.job else file.job})
        copied = file.model_copy(update={"run_id": plan.run_id})
        path = copied.path(plan.job, task_id)
        if warehouse.size_if_present(path) != file.size_bytes:
            warehouse.copy(file.path(fork, task_id), path)
        return copied

    return StateManifest(files=tuple(in_parallel(own, list(task.state.files), warehouse.requests_at_once)))
