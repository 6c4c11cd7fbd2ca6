"""What a repair writes: the files that correct a job's sinks, what is different, and where its tasks go on to write."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.columns.times import instant_text
from statelib.commits.layout import fork_topic, topic_path
from statelib.commits.maintenance.leftovers import attempt_name
from statelib.commits.versions.sink_history import sink_history
from statelib.comparison.compare import compare
from statelib.comparison.sides import sides_of
from statelib.comparison.sinks import default_way
from statelib.documents.manifests import AuditCheck, SinkFile
from statelib.documents.places import place_of, topic_and_partition
from statelib.errors.kinds import ConfigurationError
from statelib.repair.corrections import Corrections
from statelib.serdes.json import readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.comparison.difference import Difference
    from statelib.comparison.matches import Resources
    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan
    from statelib.documents.topologies import TopologyDescription
    from statelib.storage import Storage

CHECK = "corrected"
"""The name under which the audit of a repair tells the difference of a sink."""


def corrected_sinks(
    warehouse: Storage,
    plan: Plan,
    head: Commit,
    made: Commit,
    described: TopologyDescription,
    resources: Resources,
    attempt: str,
    end_ms: int | None = None,
) -> tuple[tuple[SinkFile, ...], tuple[AuditCheck, ...]]:
    """Writes the files that correct the sinks of a job.

    Topics for late and for quarantined records are left alone: they tell what was dropped when it was.

    Args:
        warehouse: Root of all durable data.
        plan: The repair's.
        head: The job's newest commit.
        made: The fork's.
        described: What the fork's topology is made of.
        resources: What the comparison may use.
        attempt: See `statelib.repair.repair.repair`.
        end_ms: See there.

    Returns:
        The files, and what is different, sink by sink.

    Raises:
        ConfigurationError: Values of a sink have other fields in the fork, or keys another type.
    """
    histories = sink_history(warehouse, head.job, head.commit), sink_history(warehouse, made.job, made.commit)
    ends, files, checks = head.sink_offsets(), [], []
    for sink, sub_topology in sorted(_writers(described, made.job).items()):
        before, after = (history.get(sink, ()) for history in histories)
        sides = sides_of(warehouse, (sink, before), (sink, after))
        way = default_way(warehouse, head.job, head.fingerprint, sink)
        corrections = Corrections(way, *sides)
        found = compare(*sides, way, resources, taker=corrections, split_ms=end_ms)
        _check_fields(found, plan, sink)
        attempts = {
            task.partition: attempt_name(plan.job, plan.run_id, str(task), attempt)
            for task in map(TaskId.parse, made.tasks)
            if task.sub_topology == sub_topology
        }
        written = corrections.write(warehouse.within(topic_path(sink)), sink, ends.get(sink, {}), attempts)
        files += [SinkFile(topic=sink, file=file) for file in written]
        checks.append(_check(sink, found, made, end_ms))
    return tuple(files), tuple(checks)


def written_offsets(
    head: Commit, fork: str, described: TopologyDescription, files: Iterable[SinkFile]
) -> dict[str, dict[str, int]]:
    """By task, where it goes on to write: behind what the job has written, and behind what corrects that.

    Args:
        head: The job's newest commit.
        fork: The fork's name.
        described: What the fork's topology, which goes on, is made of.
        files: The corrections.
    """
    writers = _writers(described, fork)
    written: dict[str, dict[str, int]] = {task_id: {} for task_id in head.tasks}

    def note(task_id: str, topic: str, partition: int, end: int) -> None:
        if topic in writers:
            task_id = str(TaskId(writers[topic], partition))
        written[task_id][place_of(topic, partition)] = end

    for task_id, task in head.tasks.items():
        for place, end in task.sink_offsets.items():
            note(task_id, *topic_and_partition(place), end)
    for sink in files:
        note("", sink.topic, sink.file.partition, sink.file.last_offset + 1)
    return written


def described_for_job(described: TopologyDescription, fork: str) -> TopologyDescription:
    """What a fork's topology is made of, with the names that its job gives the sinks."""
    nodes = (
        node.model_copy(update={"settings": node.settings | {"topic": job_topic(str(node.settings["topic"]), fork)}})
        if node.settings["node"] == "sink"
        else node
        for node in described.nodes
    )
    return described.model_copy(update={"nodes": tuple(nodes)})


def job_topic(topic: str, fork: str) -> str:
    """What the job calls a sink of its fork."""
    return topic.removesuffix(fork_topic("", fork))


def _writers(described: TopologyDescription, fork: str) -> dict[str, int]:
    """By what the job calls each topic that the fork's topology writes, the sub-topology that does."""
    read = {node.settings["topic"] for node in described.nodes if node.settings["node"] == "source"}
    return {
        job_topic(str(node.settings["topic"]), fork): node.sub_topology
        for node in described.nodes
        if node.settings["node"] == "sink" and node.settings["topic"] not in read  # else a repartition topic
    }


def _check_fields(found: Difference, plan: Plan, sink: str) -> None:
    if found.schema or not found.is_compared:
        raise ConfigurationError(
            "the fork writes other fields, or keys of another type, than the job",
            job=plan.job,
            fork=plan.repaired_by.job if plan.repaired_by is not None else None,
            topic=sink,
            field=", ".join(field.path for field in found.schema) or None,
            next_step="let readers read the fork's sinks instead",
        )


def _check(sink: str, found: Difference, made: Commit, end_ms: int | None) -> AuditCheck:
    """What is different in a sink, as a check that a person finds beside others."""
    to = {} if end_ms is None else {"to": instant_text(end_ms)}
    behind = {} if found.behind is None else {"behind": found.behind}
    examples = [asdict(example) for kind in ("changed", "only_a", "only_b") for example in found.examples[kind]]
    return AuditCheck(
        topic=sink,
        expectation=CHECK,
        parameters={"by": f"{made.job}@{made.commit}", "way": found.way, **to},
        success=True,
        observed={
            "equal": found.equal,
            "changed": found.changed,
            "taken_back": found.only_a,
            "added": found.only_b,
            **behind,
        },
        unexpected_count=found.changed + found.only_a + found.only_b,
        unexpected_rows=tuple(json.loads(readable_json(example)) for example in examples),
    )
