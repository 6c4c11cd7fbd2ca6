"""``hindstream promote`` and ``views``: readers of a job move to a fork of it, or back, and what they read in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import count_text
from hindstream.console.results import Results
from hindstream.runs import now_ms
from hindstream.sql.dialects import DIALECTS
from hindstream.sql.views import views_of
from statelib.commits.versions.promotion import go_back, promote
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.documents.upkeep import Promotion
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


def promote_job(
    new: str,
    over: str,
    settings: Settings,
    output: Output,
    *,
    allow_behind: bool,
    allow_other_fields: bool,
    published: str | None = None,
) -> None:
    """Promotes a fork, says what readers read now, and lets its topics of Kafka pass to it.

    Raises:
        HindstreamError: See `statelib.commits.versions.promotion.promote` and `hindstream.kafka.publish`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    if published is not None and (job := _declared(published, new, over)).kafka_sinks:
        from hindstream.kafka.publish import check_can_pass  # noqa: PLC0415  (an extra, which not every job needs)

        check_can_pass(job, warehouse, settings)
    at_ms = now_ms()
    made = promote(warehouse, new, over, now_ms=at_ms, allow_behind=allow_behind, allow_other_fields=allow_other_fields)
    _tell(made, output, is_new=made.at_ms == at_ms)
    _let_publications_follow(made, published, settings, output)


def promote_back(over: str, settings: Settings, output: Output, *, published: str | None = None) -> None:
    """Undoes the last promotion, says what readers read now, and lets the topics of Kafka pass back.

    Raises:
        HindstreamError: See `statelib.commits.versions.promotion.go_back` and `hindstream.kafka.publish`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    if published is not None:
        load_job(published)  # a file that is not there is told before readers move
    made = go_back(warehouse, over, now_ms=now_ms())
    _tell(made, output, is_new=True)
    _let_publications_follow(made, published, settings, output)


def _let_publications_follow(made: Promotion, published: str | None, settings: Settings, output: Output) -> None:
    out = Results(output)
    if published is None:
        if "bootstrap.servers" in settings.kafka and made.number:
            fork = f" --fork {made.serving}" if made.serving != made.job else ""
            out.say(f"Topics of Kafka follow with its next publication: hindstream publish FILE.py:NAME{fork}")
        return
    job = _declared(published, made.serving, made.job)
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    if job.kafka_sinks:
        _let_kafka_follow(made, job, warehouse, settings, out)
    if job.iceberg_sinks:
        _let_iceberg_follow(made, job, warehouse, out)
    if not (job.kafka_sinks or job.iceberg_sinks):
        out.say(f"{published} declares no topics of Kafka and no Iceberg tables, so there was nothing to publish.")


def _let_iceberg_follow(made: Promotion, job: Job, warehouse: Storage, out: Results) -> None:
    from hindstream.iceberg.publish import publish_to_iceberg  # noqa: PLC0415  (an extra, which not every job needs)

    for done in publish_to_iceberg(job, warehouse):
        if done.left_to is None:
            rows = f"{counted(done.added, 'row')} added, {count_text(done.removed)} taken out"
            out.say(f"{made.serving} publishes the Iceberg table {done.table}: {rows}.")
        out.result(done)


def _let_kafka_follow(made: Promotion, job: Job, warehouse: Storage, settings: Settings, out: Results) -> None:
    from hindstream.kafka.publish import publish_to_kafka  # noqa: PLC0415  (an extra, which not every job needs)

    for sent in publish_to_kafka(job, warehouse, settings):
        if sent.left_to is None:
            new = (
                f", and {count_text(sent.records - sent.corrections)} further"
                if sent.records > sent.corrections
                else ""
            )
            what = counted(sent.corrections, "record that differs", "records that differ")
            out.say(f"{made.serving} publishes Kafka's {sent.topic}: sent {what}{new}.")
        out.result(sent)


def _declared(reference: str, name: str, over: str) -> Job:
    """The job in a file, as the one that readers are to read."""
    job = load_job(reference)
    if name == over and job.name != over:
        step = f"give the file of {over}"
        raise ConfigurationError(f"the file has the job {job.name}", job=over, file=reference, next_step=step)
    return job if job.name == name else job.as_fork(name)


def print_views(job: str, dialect: str, schema: str | None, settings: Settings, output: Output) -> None:
    """Prints the statements that make the views of what the readers of a job read.

    Raises:
        HindstreamError: See `hindstream.sql.views.views_of`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    engine = DIALECTS[dialect]
    made = views_of(warehouse, job, engine, schema=schema)
    if output == "json":
        print_json(made)
    else:
        statements = [f"{view.sql};" for view in made.views]
        about = f"-- What the readers of {job} read: {_named(job, made.serving)}."
        typer.echo("\n\n".join(filter(None, [about, engine.begin, *statements, engine.end])))
    for view in made.views:
        if not view.is_complete:
            typer.echo(
                f"{made.serving} has written nothing to {view.sink} yet. Make its view again when it has.", err=True
            )


def _named(job: str, serving: str) -> str:
    return serving if serving != job else "the job itself"


def _tell(made: Promotion, output: Output, *, is_new: bool) -> None:
    out = Results(output)
    what = f"{made.serving}@{made.commit}" if made.serving != made.job else "the job itself"
    by = f" (promotion {made.number})" if made.number else ""
    since = " from now on" if is_new and made.number else ", as before"
    out.say(f"Readers of {made.job} read {what}{since}{by}.")
    if made.serving != made.job:
        out.say(f"The way back: hindstream promote --back --over {made.job}")
    if made.number and is_new:
        out.say(f"If they read views of SQL, make these again: hindstream views {made.job} --dialect ENGINE")
    out.result(made)
