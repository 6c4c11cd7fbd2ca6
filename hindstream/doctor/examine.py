"""All checks, one after the other, and their findings as lines in a terminal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from hindstream.console.json_lines import print_json
from hindstream.console.output import standard_output
from hindstream.doctor import airflow, expectations, host, lake, times, warehouse
from hindstream.doctor.finding import Finding, found
from statelib.job.kafka_topic import KafkaTopic
from statelib.job.lake_topic import LakeTopic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.console.json_lines import Output
    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings


def examine(
    settings: Settings,
    *,
    job: Job | str | None = None,
    topics: tuple[Topic, ...] = (),
    handover: Handover | None = None,
    connection: str | None = None,
    with_spark: bool = True,
) -> Iterator[Finding]:
    """All that can be looked at, one finding after the other; nothing is changed.

    Args:
        settings: See `Settings`.
        job: A job, or its name.
        topics: Topics that are archived.
        handover: What a live application takes over.
        connection: Airflow's connection with the credentials of the object store.
        with_spark: Whether to start Spark, which takes some seconds.
    """
    yield from found("Java", host.check_java) if settings.engine == "spark" else ()
    yield from found("packages", host.check_packages)
    yield from found("state_dir", partial(host.check_state_dir, settings))
    yield from found("memory", partial(host.check_memory, settings))
    yield from found("warehouse", partial(warehouse.check_warehouse, settings))
    if job is not None:
        name = job if isinstance(job, str) else job.name
        yield from found(f"job {name}", partial(warehouse.check_job, name, settings))
        if not isinstance(job, str):
            yield from found("expectations", partial(expectations.check_job_expectations, job, settings))
        yield from found("sources", partial(times.check_times, job, settings))
    for topic in topics:
        if isinstance(topic, LakeTopic):
            yield from found(f"topic {topic.name}", partial(lake.check_lake, topic, settings))
    if settings.kafka:
        from hindstream.doctor import kafka  # noqa: PLC0415  (an extra)

        yield from found("Kafka", partial(kafka.check_cluster, settings))
        for topic in (topic for topic in topics if isinstance(topic, KafkaTopic)):
            yield from found(f"topic {topic.name}", partial(kafka.check_sources, [topic], settings))
        if job is not None and not isinstance(job, str):
            yield from found("sinks in Kafka", partial(kafka.check_sinks, job, settings))
        if handover is not None:
            yield from found("changelogs", partial(kafka.check_handover, handover, settings))
    yield from found("Airflow", partial(airflow.check_airflow, connection))
    if with_spark:
        yield from found("Spark", partial(_check_spark, settings))


def _check_spark(settings: Settings) -> Iterator[Finding]:
    if settings.engine == "local":
        what = "runs start none (engine = local); migrations, rebuilt states and copies from Kafka do"
        yield Finding("Spark", "ok", what)
        return
    from hindstream.doctor import spark  # noqa: PLC0415  (a second, for who does not want it)

    yield from spark.check_spark(settings)


def print_findings(findings: Iterator[Finding], output: Output = "table") -> bool:
    """Prints a line for each as it comes, and what to do; says whether nothing is wrong."""
    if output == "json":
        wrong = 0
        for finding in findings:
            print_json(finding)
            wrong += finding.state == "wrong"
        return not wrong
    console = standard_output()
    styles = {"ok": "green", "look": "yellow", "wrong": "bold red"}
    wrong = 0
    for finding in findings:
        wrong += finding.state == "wrong"
        line = Table.grid(padding=(0, 2))
        line.add_column(width=5)
        line.add_column()
        line.add_row(Text(finding.state, styles[finding.state]), f"{finding.about}: {finding.what}")
        console.print(line)
        if finding.next_step:
            console.print(f"       {finding.next_step}", highlight=False, soft_wrap=True)
    console.print("Nothing is wrong." if not wrong else f"{wrong} wrong.")
    return not wrong
