"""What is tried: which version, against which job, up to where; and whether it can be compared at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.runs import split_commit
from hindstream.spark.expectations.plan_time import topic_schemas
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import Runs
from statelib.commits.standing import standing_commit
from statelib.commits.versions.sink_history import sink_history, topics_aside
from statelib.commits.versions.trials import plan_trial
from statelib.comparison.fields import Rules, check_paths
from statelib.comparison.sinks import JobCommit, check_known
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.records.key_sample import KeySample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from statelib.commits.versions.trials import Trial
    from statelib.job.job import Job
    from statelib.storage import Storage

_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Against:
    """What another version is compared with.

    Attributes:
        job: The job's name.
        commit: As of which commit; None: the newest.
        version: What it runs; None: nobody has said.
    """

    job: str
    commit: int | None
    version: Job | None

    @classmethod
    def of(cls, reference: str | None, new: Job) -> Against:
        """What ``JOB[@COMMIT]`` says, the job's name or where it is; None: the job whose name the other version has.

        Raises:
            ConfigurationError: No job can have that name, or there is none where it is said to be.
        """
        if reference is None:
            return cls(new.name, None, None)
        place, commit = split_commit(reference)
        if ":" in place or place.endswith(".py"):
            old = load_job(place)
            return cls(old.name, commit, old)
        check_job_name(place)
        return cls(place, commit, None)


def share_of(text: str) -> float:
    """What ``1%`` or ``0.01`` says: a share of the keys.

    Raises:
        ConfigurationError: It is no share between 0 and 1.
    """
    is_percent = text.endswith("%")
    try:
        share = float(text.removesuffix("%")) / (100 if is_percent else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        step = "write --sample-keys 1%, or --sample-keys 0.01; leave it out for all keys"
        raise ConfigurationError(f"{text} is no part of the keys", setting="--sample-keys", next_step=step)
    return share


def planned(
    warehouse: Storage,
    new: Job,
    against: Against,
    fork: str,
    *,
    start_ms: int | None,
    end_ms: int | None,
    sample_keys: float | None = None,
) -> Trial:
    """What has to be replayed to compare a version with a job: see `statelib.commits.versions.trials.plan_trial`.

    ``sample_keys``: the share of the keys that is; None: all.

    Raises:
        ConfigurationError: Two ends are given, a commit and a time; or see there.
    """
    if against.commit is not None and end_ms is not None:
        step = f"give one of them: {against.job}@{against.commit}, or --to"
        raise ConfigurationError("two ends of the trial are given", job=against.job, next_step=step)
    trial = plan_trial(
        warehouse,
        against.job,
        new.as_fork(fork).topology,
        fork,
        old=None if against.version is None else against.version.topology,
        commit=against.commit,
        start_ms=start_ms,
        end_ms=end_ms,
    )
    return trial.model_copy(update={"sample_keys": sample_keys})


def compared(trial: Trial) -> tuple[JobCommit, JobCommit]:
    """The job and the version that is tried, where they are compared."""
    old = JobCommit(trial.old.fork) if trial.old is not None else JobCommit(*trial.at) if trial.at is not None else None
    return old or JobCommit(trial.job), JobCommit(trial.new.fork)


def check_compared(
    warehouse: Storage,
    trial: Trial,
    new: Job,
    sinks: Sequence[str],
    stores: Sequence[str] | None,
    rules: Rules = _NO_RULES,
) -> None:
    """Makes sure that there will be what is to be compared, before anything is replayed.

    Args:
        warehouse: Root of all durable data.
        trial: What is tried.
        new: The job's other version.
        sinks: See `statelib.comparison.sinks.compare_sinks`.
        stores: See `statelib.comparison.stores.compare_stores`; None: none.
        rules: Their fields are looked for in the sinks, unless they may be meant for stores.

    Raises:
        ConfigurationError: One of them has no such sink or store; neither has such a field; or an operator of the other
            version cannot work on what it would get.
    """
    job, commit = trial.at or (trial.job, None)
    there, aside = sink_history(warehouse, job, commit), topics_aside(warehouse, job)
    begun = sink_history(warehouse, trial.new.job, trial.new.commit) if trial.new.commit else {}
    check_known("sink", sinks, there, {*new.topology.sink_topics, *aside, *begun}, (job, new.name))
    described = Runs(warehouse, job).topology(standing_commit(warehouse, job, commit).fingerprint)
    if described is not None and stores:
        tasks = (processor for sub in new.topology.sub_topologies for processor in sub.processors)
        of_new = {store.name for processor in tasks for store in processor.spec.state_stores()}
        check_known("store", stores, {store.name for store in described.stores}, of_new, (job, new.name))
    if stores is None and (rules.ignored or rules.tolerances):
        topics = {part.topic for segments in there.values() for part in segments}
        archives = [open_archive_if_present(warehouse, topic) for topic in topics]
        known = [archive.schema for archive in archives if archive is not None]
        check_paths(rules, [schema.field("value").type for schema in (*known, *_schemas_of(warehouse, new, trial))])


def _schemas_of(warehouse: Storage, new: Job, trial: Trial) -> Iterator[pa.Schema]:
    """Of all sinks of the other version; those of late and of quarantined records have the values of its sources."""
    of_fork = new.as_fork(trial.new.fork)
    yield from topic_schemas(of_fork, warehouse, of_fork.topology.sink_topics).values()
    yield from (open_archive(warehouse, topic).schema for topic in of_fork.topology.source_topics)


def sampled(trial: Trial) -> KeySample | None:
    """The keys that are replayed and compared; None: all."""
    return None if trial.sample_keys is None else KeySample(trial.sample_keys, seen=set())
