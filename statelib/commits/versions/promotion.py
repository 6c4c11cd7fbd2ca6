"""Which version of a job its readers read: a fork is promoted over the job, and the way back is the same way.

::

    jobs/<job>/promotions/<n, 20 digits>.json   see `statelib.documents.upkeep.Promotion`

Readers ask for the sinks of a job by its name. The newest promotion over that name says which job they get; without
one it is the job itself. Promotions have contiguous numbers and are created only if absent, so all readers of all sinks
move in one step, and of two promotions at once one is refused.

A promotion looks whether the fork is being dropped, or gone, *after* it has been created, and takes itself back if so.
A drop leaves its record *before* it looks whether the fork serves readers, and a rollback of a job before the fork its
plan. Whoever comes second sees the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.forks import ancestors, check_no_sample, is_being_dropped
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import CommitLog, JobLayout, Runs, numbers_in
from statelib.commits.publication.publish import published_through
from statelib.commits.standing import standing_commit
from statelib.commits.versions.sink_history import sink_history, topics_aside
from statelib.documents.places import place_of
from statelib.documents.upkeep import Promotion
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError
from statelib.topics.parquet.schema_changes import changes, still_has

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


def serving(warehouse: Storage, job: str) -> str:
    """The job whose sinks the readers of ``job`` read: itself, or what was promoted over it."""
    last = _last(warehouse, job)
    return job if last is None else last.serving


def promotions(warehouse: Storage, job: str) -> list[Promotion]:
    """All promotions over a job, oldest first.

    Raises:
        CorruptedDataError: A document is damaged.
    """
    return [_read(warehouse, job, n) for n in range(1, _count(warehouse, job) + 1)]


def promote(
    warehouse: Storage,
    new: str,
    over: str,
    *,
    now_ms: int,
    allow_behind: bool = False,
    allow_other_fields: bool = False,
) -> Promotion:
    """Lets the readers of ``over`` read ``new`` from now on. If they do already, nothing changes.

    Args:
        warehouse: Root of all durable data.
        new: A fork of ``over``, or of a fork of it; or ``over`` itself, which is the way back.
        over: The job whose readers these are.
        now_ms: The wall clock.
        allow_behind: Whether ``new`` may have taken up less of a source than the job that serves now.
        allow_other_fields: Whether sinks of ``new`` may lack fields that readers know, or have others of these types.

    Returns:
        The promotion that stands; of number 0, and not stored, if nobody was ever promoted and nothing changes.

    Raises:
        ConfigurationError: One of them has no commits; ``new`` is no fork of ``over``, lacks one of its sinks, is not
            published to its newest commit, is behind, has other fields, or is being dropped; or ``over`` serves the
            readers of another job.
        FencedError: Somebody else has promoted meanwhile.
    """
    for name in (new, over):
        check_job_name(name)
    last = _last(warehouse, over)
    now = over if last is None else last.serving
    made, _ = (standing_commit(warehouse, job) for job in (new, over))
    if now == new:
        return last or Promotion(job=over, number=0, serving=over, commit=made.commit, at_ms=now_ms)
    _check_related(warehouse, new, over)
    check_no_sample(warehouse, made)
    _check_there(warehouse, made)
    _check_published(warehouse, made)
    if not allow_behind:
        _check_not_behind(warehouse, made, now)
    _check_sinks(warehouse, new, now, allow_other_fields=allow_other_fields)
    number = 1 if last is None else last.number + 1
    wanted = Promotion(job=over, number=number, serving=new, commit=made.commit, at_ms=now_ms)
    _create(warehouse, wanted)
    try:
        _check_there(warehouse, made)
        _check_history_stays(warehouse, new)
    except ConfigurationError:
        go_back(warehouse, over, now_ms=now_ms)
        raise
    return wanted


def go_back(warehouse: Storage, over: str, *, now_ms: int) -> Promotion:
    """Takes the last promotion back that has not been taken back yet; who is behind or not published serves again too.

    A fork is passed over that has been dropped since, even if another one has its name now, or that has lost the
    beginning of its history by a rollback.

    Raises:
        ConfigurationError: The job has no commits, or nothing is promoted over it.
        FencedError: Somebody else has promoted meanwhile.
    """
    standing_commit(warehouse, over)
    made = promotions(warehouse, over)
    standing: list[Promotion] = []
    for one in made:
        if one.undoes is None:
            standing.append(one)
        else:
            standing = [before for before in standing if before.number < one.undoes]
    while standing:
        undone = standing.pop()
        before = standing[-1].serving if standing else over
        head = CommitLog(warehouse, before).head()
        can_be_read = before == over or (_is_still_there(warehouse, standing[-1]) and _is_whole(warehouse, before))
        if head is not None and can_be_read and not is_being_dropped(warehouse, before):
            number = made[-1].number + 1
            back = Promotion(
                job=over, number=number, serving=before, commit=head.commit, at_ms=now_ms, undoes=undone.number
            )
            _create(warehouse, back)
            return back
    what = "nothing is promoted over the job, so that there is no way back"
    raise ConfigurationError(what, job=over, next_step="name the job whose readers were moved: hindstream jobs")


def served_by(warehouse: Storage, job: str) -> tuple[str, ...]:
    """The jobs whose readers read ``job`` instead; by name."""
    return tuple(name for name in ancestors(warehouse, job) if name != job and serving(warehouse, name) == job)


def check_serves_nobody(warehouse: Storage, job: str) -> None:
    """Makes sure that no readers of another job read a fork that is about to go.

    Raises:
        ConfigurationError: Some do.
    """
    for over in served_by(warehouse, job):
        what = f"the readers of {over} read it"
        step_ = f"let them read another job first: hindstream promote --back --over {over}"
        raise ConfigurationError(what, job=job, next_step=step_)


def _create(warehouse: Storage, wanted: Promotion) -> None:
    step("promote.before-create")
    path = JobLayout(wanted.job).promotion(wanted.number)
    if not warehouse.put_if_absent(path, wanted.encode()) and _read(warehouse, wanted.job, wanted.number) != wanted:
        raise FencedError(
            "somebody else has promoted over this job meanwhile",
            job=wanted.job,
            next_step="look which job serves now, and give the command again if that is wrong: hindstream jobs",
        )
    step("promote.created")


def _count(warehouse: Storage, job: str) -> int:
    folder = JobLayout(job).promotion(0).rpartition("/")[0]
    return max(numbers_in(warehouse, folder), default=0)


def _last(warehouse: Storage, job: str) -> Promotion | None:
    number = _count(warehouse, job)
    return _read(warehouse, job, number) if number else None


def _read(warehouse: Storage, job: str, number: int) -> Promotion:
    path = JobLayout(job).promotion(number)
    found = Promotion.read_if_present(warehouse, path)
    if found is None:
        step_ = "restore the file from a copy of the warehouse"
        raise CorruptedDataError(f"promotion {number} is missing", job=job, file=warehouse.uri(path), next_step=step_)
    return found


def _check_related(warehouse: Storage, new: str, over: str) -> None:
    if over not in ancestors(warehouse, new):
        what = f"it is no fork of {over}, so nobody knows which of its sinks stand for which"
        step_ = f"fork the job first: hindstream fork {over} NEW"
        if new in ancestors(warehouse, over):
            step_ = f"exchange them: hindstream promote {over} --over {new}"
        raise ConfigurationError(what, job=new, next_step=step_)
    for other in served_by(warehouse, over):
        what = f"the job serves the readers of {other} itself"
        raise ConfigurationError(what, job=over, next_step=f"move these: hindstream promote {new} --over {other}")


def _check_there(warehouse: Storage, made: Commit) -> None:
    if is_being_dropped(warehouse, made.job):
        raise ConfigurationError("the fork is being dropped", job=made.job, next_step="promote another job")
    if CommitLog(warehouse, made.job).read_if_present(made.commit) != made:
        raise ConfigurationError("the fork has been dropped", job=made.job, next_step="promote another job")


def _check_history_stays(warehouse: Storage, new: str) -> None:
    """Makes sure that no rollback of a job before the fork takes the beginning of its history, now or in a moment.

    A rollback looks for promotions after it has left its plan. So its plan, or its commit, can be seen here.
    """
    for job in ancestors(warehouse, new):
        plans = list(Runs(warehouse, job).attempts(CommitLog(warehouse, job).head_number() + 1))
        to = plans[-1].rolled_back_to if plans and job != new else None
        if to is not None:
            what = f"a rollback of {job} to commit {to}, which the fork may rest on, has begun"
            step_ = f"end it, then promote: hindstream state rollback {job} --to {to}"
            raise ConfigurationError(what, job=new, next_step=step_)
    sink_history(warehouse, new)


def _is_still_there(warehouse: Storage, made: Promotion) -> bool:
    """Whether the job that was promoted is the one that has its name now."""
    first = CommitLog(warehouse, made.serving).read_if_present(1)
    return first is not None and first.created_at_ms <= made.at_ms


def _is_whole(warehouse: Storage, job: str) -> bool:
    try:
        sink_history(warehouse, job)
    except ConfigurationError:
        return False
    return True


def _check_published(warehouse: Storage, made: Commit) -> None:
    shown = published_through(warehouse, made.job)
    if shown < made.commit:
        what = f"its newest commit is {made.commit}, and readers see commit {shown}"
        raise ConfigurationError(what, job=made.job, next_step=f"publish it first: hindstream publish {made.job}")


def _check_not_behind(warehouse: Storage, made: Commit, now: str) -> None:
    reached, there = (_flat(commit.source_offsets()) for commit in (made, standing_commit(warehouse, now)))
    for place in sorted(reached.keys() & there.keys()):
        if reached[place] < there[place]:
            raise ConfigurationError(
                f"it has come to offset {reached[place]} of {place}, and {now}, which readers read, to {there[place]}",
                job=made.job,
                next_step="run it until it has caught up, or let readers go back in time with --allow-behind",
            )


def _flat(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
    return {place_of(topic, partition): end for topic, ends in offsets.items() for partition, end in ends.items()}


def _check_sinks(warehouse: Storage, new: str, now: str, *, allow_other_fields: bool) -> None:
    before, after = (_schemas(warehouse, job) for job in (now, new))
    missing = sorted(before.keys() - after.keys())
    if missing:
        what = f"it does not write {', '.join(missing)}, which readers of {now} may read"
        raise ConfigurationError(what, job=new, next_step="let its topology write them")
    for sink, was in before.items():
        schema = after[sink]
        if allow_other_fields or was is None or schema is None:  # no record was ever written
            continue
        for column in ("key", "value"):
            types = was.field(column).type, schema.field(column).type
            if not still_has(*types):
                raise ConfigurationError(
                    f"it has other fields than readers of {now} know: {'; '.join(changes(*types, column))}",
                    job=new,
                    topic=sink,
                    next_step="tell the readers, then give --allow-other-fields",
                )


def _schemas(warehouse: Storage, job: str) -> dict[str, pa.Schema | None]:
    """By sink the schema that readers see, but for topics of late and quarantined records; None: it has no records."""
    aside = topics_aside(warehouse, job)
    found: dict[str, pa.Schema | None] = {}
    for sink, segments in sink_history(warehouse, job).items():
        if sink not in aside:
            archive = open_archive_if_present(warehouse, segments[-1].topic) if segments else None
            found[sink] = None if archive is None else archive.table_schema
    return found
