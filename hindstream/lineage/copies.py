"""Topics of Kafka that are copied into archives: what lies before the sources of a job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    dataset_type_dataset,
    dataset_version_dataset,
    job_type_job,
    storage_dataset,
)

from hindstream.lineage.datasets import schema_of
from hindstream.lineage.events import run_facets, time_text
from hindstream.lineage.names import dataset_at, kafka_topic, run_uuid
from hindstream.lineage.parent import parent_of
from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path

if TYPE_CHECKING:
    from openlineage.client.generated.base import DatasetFacet

    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings


def of_copy(topic: KafkaTopic, settings: Settings, began_ms: int, ended_ms: int, error: str | None) -> list[RunEvent]:
    """START and the end of a copy, which is a run of the job ``archive.<archive>``; ``error``: why it failed."""
    namespace, warehouse = os.environ.get("OPENLINEAGE_NAMESPACE", "default"), open_warehouse(settings)
    uri, name = warehouse.uri(topic_path(topic.archive_name)), f"archive.{topic.archive_name}"
    run_id = str(run_uuid(began_ms, namespace, uri, name))
    source = InputDataset(
        *kafka_topic(settings.kafka.get("bootstrap.servers", ""), topic.name),
        facets={"datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TOPIC")},
    )
    facets: dict[str, DatasetFacet] = {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TABLE", "DELTA"),
        "storage": storage_dataset.StorageDatasetFacet("delta", "parquet"),
    }
    if (archive := open_archive_if_present(warehouse, topic.archive_name)) is not None:
        facets["schema"] = schema_of(archive)
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(archive.version))

    def event(state: Literal["START", "COMPLETE", "FAIL"], at_ms: int, what: str | None) -> RunEvent:
        return RunEvent(
            eventTime=time_text(at_ms),
            run=Run(run_id, run_facets(settings, what, parent_of(os.environ))),
            job=Job(namespace, name, {"jobType": job_type_job.JobTypeJobFacet("BATCH", "HINDSTREAM", "JOB")}),
            eventType=RunState[state],
            inputs=[source],
            outputs=[OutputDataset(*dataset_at(uri), facets=facets)],
        )

    return [event("START", began_ms, None), event("COMPLETE" if error is None else "FAIL", ended_ms, error)]
