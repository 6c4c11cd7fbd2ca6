"""Commits that replay nothing: repairs, rollbacks, and what takes over from a live application."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    dataset_type_dataset,
    job_type_job,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
)

from hindstream.lineage.datasets import archive_facets
from hindstream.lineage.events import own_facet, run_facets, time_text
from hindstream.lineage.names import dataset_at, kafka_topic, run_uuid
from hindstream.lineage.parent import parent_of
from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, topic_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openlineage.client.generated.base import DatasetFacet, OutputDatasetFacet

    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

Change = Literal["repair", "rollback", "takeover"]


def change_of(made: Commit) -> Change:
    """What a commit that replays nothing does."""
    if made.repaired_by is not None:
        return "repair"
    return "rollback" if made.taken_over is None else "takeover"


def of_change(
    made: Commit, settings: Settings, began_ms: int, ended_ms: int, changelogs: Sequence[str]
) -> list[RunEvent]:
    """START and COMPLETE of a change, which is a run of the job ``<job>.repair`` and so on.

    Args:
        made: Its commit.
        settings: See `Settings`.
        began_ms: When it began.
        ended_ms: When it was done.
        changelogs: Topics of Kafka that the state was taken from.
    """
    namespace, warehouse = os.environ.get("OPENLINEAGE_NAMESPACE", "default"), open_warehouse(settings)
    change = change_of(made)
    name = f"{made.job}.{change}"
    run_id = str(run_uuid(made.created_at_ms, namespace, warehouse.uri(""), name, made.run_id))
    facets = run_facets(settings, None, parent_of(os.environ)) | {"hindstream": own_facet(made)}
    inputs = [_changelog(topic, settings) for topic in changelogs]
    if change == "repair":
        inputs = [InputDataset(*dataset_at(warehouse.uri(topic_path(source.topic)))) for source in made.sources]

    def event(state: Literal["START", "COMPLETE"], at_ms: int) -> RunEvent:
        return RunEvent(
            eventTime=time_text(at_ms),
            run=Run(run_id, facets),
            job=Job(namespace, name, {"jobType": job_type_job.JobTypeJobFacet("BATCH", "HINDSTREAM", "JOB")}),
            eventType=RunState[state],
            inputs=inputs,
            outputs=outputs if state == "COMPLETE" else [],
        )

    outputs = [_output(warehouse, topic, rows) for topic, rows in _changed(warehouse, made).items()]
    return [event("START", began_ms), event("COMPLETE", ended_ms)]


def _changed(warehouse: Storage, made: Commit) -> dict[str, int | None]:
    """The sinks that a change has written to, with the records that were added; None: records were taken out."""
    if made.rolled_back_to is None:
        rows: dict[str, int | None] = {}
        for sink in made.sinks:
            rows[sink.topic] = (rows.get(sink.topic) or 0) + sink.file.rows
        return rows
    before = CommitLog(warehouse, made.job).read(made.commit - 1).sink_offsets()
    after = made.sink_offsets()
    return {topic: None for topic, ends in sorted(before.items()) if ends != after.get(topic)}


def _changelog(topic: str, settings: Settings) -> InputDataset:
    facets: dict[str, DatasetFacet] = {"datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TOPIC")}
    return InputDataset(*kafka_topic(settings.kafka.get("bootstrap.servers", ""), topic), facets=facets)


def _output(warehouse: Storage, topic: str, rows: int | None) -> OutputDataset:
    archive = open_archive_if_present(warehouse, topic)
    facets = archive_facets(archive, None if archive is None else archive.version)
    counted: dict[str, OutputDatasetFacet] = {}
    if rows is None:
        taken_out = lifecycle_state_change_dataset.LifecycleStateChange.OVERWRITE
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(taken_out)
    else:
        counted["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows)
    return OutputDataset(*dataset_at(warehouse.uri(topic_path(topic))), facets=facets, outputFacets=counted)
