"""What is copied into archives, from topics of Kafka and files of a lake: what lies before the sources of a job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import dataset_type_dataset, job_type_job, output_statistics_output_dataset

from hindstream.lineage.datasets import archive_facets
from hindstream.lineage.events import run_facets, time_text
from hindstream.lineage.names import dataset_at, kafka_topic, lake_source, run_uuid
from hindstream.lineage.parent import parent_of
from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path
from statelib.job.lake_topic import LakeTopic

if TYPE_CHECKING:
    from openlineage.client.generated.base import OutputDatasetFacet

    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings


def of_copy(
    topic: Topic, settings: Settings, began_ms: int, ended_ms: int, error: str | None, records: int | None = None
) -> list[RunEvent]:
    """START and the end of a copy, which is a run of the job ``archive.<archive>``, or ``ingest.<archive>`` of files.

    Args:
        topic: What was copied.
        settings: See `Settings`.
        began_ms: When.
        ended_ms: Until when.
        error: Why it failed; None: it has not.
        records: How many were added; None: nobody has counted.
    """
    namespace, warehouse = os.environ.get("OPENLINEAGE_NAMESPACE", "default"), open_warehouse(settings)
    kind = "ingest" if isinstance(topic, LakeTopic) else "archive"
    uri, name = warehouse.uri(topic_path(topic.archive_name)), f"{kind}.{topic.archive_name}"
    run_id = str(run_uuid(began_ms, namespace, uri, name))
    sources = _sources(topic, settings)
    counted: dict[str, OutputDatasetFacet] = {}
    if records is not None:
        counted["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(records)
    archive = open_archive_if_present(warehouse, topic.archive_name)
    facets = archive_facets(archive, None if archive is None else archive.version)

    def event(state: Literal["START", "COMPLETE", "FAIL"], at_ms: int, what: str | None) -> RunEvent:
        return RunEvent(
            eventTime=time_text(at_ms),
            run=Run(run_id, run_facets(settings, what, parent_of(os.environ))),
            job=Job(namespace, name, {"jobType": job_type_job.JobTypeJobFacet("BATCH", "HINDSTREAM", "JOB")}),
            eventType=RunState[state],
            inputs=sources,
            outputs=[
                OutputDataset(*dataset_at(uri), facets=facets, outputFacets=counted if state == "COMPLETE" else {})
            ],
        )

    return [event("START", began_ms, None), event("COMPLETE" if error is None else "FAIL", ended_ms, error)]


def _sources(topic: Topic, settings: Settings) -> list[InputDataset]:
    if isinstance(topic, LakeTopic):
        found = [name for source in topic.sources if (name := lake_source(source)) is not None]
        return [InputDataset(*name) for name in dict.fromkeys(found)]
    name = kafka_topic(settings.kafka.get("bootstrap.servers", ""), topic.name)
    return [InputDataset(*name, facets={"datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TOPIC")})]
