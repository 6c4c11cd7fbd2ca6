"""The inputs and outputs of a run as OpenLineage's datasets, with all that the warehouse knows of them.

Fields of structs are columns with dots in their names (``value.amount``), as in expectations and reports.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    data_quality_assertions_dataset,
    dataset_type_dataset,
    dataset_version_dataset,
    input_statistics_input_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    storage_dataset,
)

from hindstream.lineage.names import DatasetName, dataset_at, kafka_topic
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path
from statelib.commits.versions.publishers import publisher_of
from statelib.topology.column_lineage import column_lineage, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openlineage.client.generated.base import DatasetFacet, InputDatasetFacet, OutputDatasetFacet

    from statelib.documents.manifests import Audit, AuditCheck, Commit, Severity, Staged
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive
    from statelib.topology.column_lineage import SinkLineage
    from statelib.topology.column_origins import Origin

SEVERITIES: Mapping[Severity, Literal["error", "warn"]] = {"fail": "error", "warn": "warn"}
"""OpenLineage's words for ours."""

_DIRECT = ("identity", "transformation", "aggregation")
_ASSUMED = "a Python function may read it"


@dataclass(frozen=True)
class Datasets:
    """What a run reads and writes.

    Attributes:
        staged: What it has made; None: it has not come that far.
        former: The commit that it goes on from; None: it is the first.
        is_published: Whether what it has made is in the topics.
    """

    job: Job
    settings: Settings
    warehouse: Storage
    plan: Plan
    staged: Staged | None
    former: Commit | None
    is_published: bool = False

    def inputs(self, audit: Audit | None = None) -> list[InputDataset]:
        """The sources, as the plan has found them, with what their checks have said."""
        checks = audit.checks if audit is not None else self.staged.source_checks if self.staged is not None else ()
        return [self._input(source.topic, source.delta_version, checks) for source in self.plan.sources]

    def outputs(self) -> list[OutputDataset]:
        """What the run writes, and the topics of Kafka that it is sent to."""
        return [*map(self._output, self._written), *self._sent()]

    def audited(self, audit: Audit) -> list[InputDataset]:
        """What was audited, with the checks of each."""
        return [
            InputDataset(
                *self._name(topic),
                facets=self._facets(topic),
                inputFacets=_assertions(topic, audit.checks),
            )
            for topic in [*(source.topic for source in self.plan.sources), *self._written]
            if any(check.topic == topic for check in audit.checks)
        ]

    @cached_property
    def _written(self) -> list[str]:
        """The sinks, and what else has records."""
        staged = [file.topic for task in self.staged.tasks for file in task.sinks] if self.staged else []
        return list(dict.fromkeys([*self.job.topology.sink_topics, *staged]))

    @cached_property
    def _archives(self) -> dict[str, TopicArchive]:
        """The archives of all topics that have one."""
        topics = [*(source.topic for source in self.plan.sources), *self._written]
        archives = {topic: open_archive_if_present(self.warehouse, topic) for topic in topics}
        return {topic: archive for topic, archive in archives.items() if archive is not None}

    @cached_property
    def _lineage(self) -> dict[str, SinkLineage]:
        schemas = {topic: archive.schema for topic, archive in self._archives.items()}
        return column_lineage(self.job.topology, schemas, schemas)

    def _name(self, topic: str) -> DatasetName:
        return dataset_at(self.warehouse.uri(topic_path(topic)))

    def _facets(self, topic: str, version: int | None = None) -> dict[str, DatasetFacet]:
        """Those of an archive, and of its version."""
        return archive_facets(self._archives.get(topic), version)

    def _input(self, topic: str, version: int, checks: Sequence[AuditCheck]) -> InputDataset:
        ranges = {
            (part.partition, part.records) for task in self.plan.tasks for part in task.sources if part.topic == topic
        }
        statistics: dict[str, InputDatasetFacet] = {
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rowCount=sum(records for _, records in ranges)
            )
        }
        facets = statistics | _assertions(topic, checks)
        return InputDataset(*self._name(topic), facets=self._facets(topic, version), inputFacets=facets)

    def _output(self, topic: str) -> OutputDataset:
        archive = self._archives.get(topic) if self.is_published else None
        facets = self._facets(topic, None if archive is None else archive.version) | self._column_lineage(topic)
        if archive is not None and not any(self._written_before.get(topic, {}).values()):
            change = lifecycle_state_change_dataset.LifecycleStateChange.CREATE
            facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(change)
        return OutputDataset(*self._name(topic), facets=facets, outputFacets=self._statistics(topic))

    @cached_property
    def _written_before(self) -> dict[str, dict[int, int]]:
        return {} if self.former is None else self.former.sink_offsets()

    def _statistics(self, topic: str) -> dict[str, OutputDatasetFacet]:
        if self.staged is None:
            return {}
        files = [made.file for task in self.staged.tasks for made in task.sinks if made.topic == topic]
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(file.rows for file in files),
            size=sum(file.size_bytes for file in files),
            fileCount=len(files),
        )
        return {"outputStatistics": statistics}

    def _sent(self) -> Iterable[OutputDataset]:
        """The topics of Kafka that this job publishes to; where the cluster is, the settings say."""
        servers = self.settings.kafka.get("bootstrap.servers")
        for topic in self.job.kafka_sinks if servers else ():
            if publisher_of(self.warehouse, self.job.name, topic.archive_name).job != self.job.name:
                continue
            facets: dict[str, DatasetFacet] = {"datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TOPIC")}
            if (archive := self._archives.get(topic.archive_name)) is not None:
                facets["schema"] = schema_of(archive)
            facets |= self._column_lineage(topic.archive_name)
            yield OutputDataset(*kafka_topic(servers or "", topic.name), facets=facets)

    def _column_lineage(self, sink: str) -> dict[str, DatasetFacet]:
        if (found := self._lineage.get(sink)) is None:
            return {}
        fields = {name: column_lineage_dataset.Fields(self._of(origins)) for name, origins in found.fields.items()}
        facet = column_lineage_dataset.ColumnLineageDatasetFacet(fields, self._of(found.decided_by))
        return {"columnLineage": facet}

    def _of(self, origins: Iterable[Origin]) -> list[column_lineage_dataset.InputField]:
        """Each field of an input once, with all that becomes of it."""
        uses: dict[tuple[str, tuple[str, ...]], dict[str, bool]] = {}
        for origin in origins:
            of_field = uses.setdefault((origin.topic, origin.path), {})
            of_field[origin.use] = of_field.get(origin.use, True) and origin.is_assumed
        return [
            column_lineage_dataset.InputField(
                *self._name(topic),
                ".".join(path),
                [_transformation(use, is_assumed=is_assumed) for use, is_assumed in of_field.items()],
            )
            for (topic, path), of_field in uses.items()
        ]


def _transformation(use: str, *, is_assumed: bool) -> column_lineage_dataset.Transformation:
    return column_lineage_dataset.Transformation(
        type="DIRECT" if use in _DIRECT else "INDIRECT",
        subtype=use.upper(),
        description=_ASSUMED if is_assumed else None,
        masking=False,
    )


def archive_facets(archive: TopicArchive | None, version: int | None) -> dict[str, DatasetFacet]:
    """Those of a topic's archive, which may not be there yet, and of a version of it; None: of none."""
    facets: dict[str, DatasetFacet] = {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TABLE", "DELTA"),
        "storage": storage_dataset.StorageDatasetFacet("delta", "parquet"),
    }
    if archive is not None:
        facets["schema"] = schema_of(archive)
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(version))
    return facets


def schema_of(archive: TopicArchive) -> schema_dataset.SchemaDatasetFacet:
    """The columns of an archive."""
    columns = [(".".join(path), str(of)) for path, of in leaves(archive.schema)]
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, of, ordinal_position=place)
        for place, (name, of) in enumerate(columns, start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields)


def _assertions(topic: str, checks: Sequence[AuditCheck]) -> dict[str, InputDatasetFacet]:
    """What the checks of a topic have said; nothing, if there are none."""
    if not (assertions := [_assertion(check) for check in checks if check.topic == topic]):
        return {}
    facet = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(assertions=assertions)
    return {"dataQualityAssertions": facet}


def _assertion(check: AuditCheck) -> data_quality_assertions_dataset.Assertion:
    column = check.parameters.get("column")
    return data_quality_assertions_dataset.Assertion(
        assertion=check.expectation,
        success=check.success,
        column=column if isinstance(column, str) else None,
        severity=SEVERITIES[check.severity],
        name=name_of(check),
        expected=expected(check),
        actual=actual(check),
    )


def name_of(check: AuditCheck) -> str:
    """What tells a check from others of its run."""
    return f"{check.topic}: {check.expectation}({expected(check) or ''})"


def expected(check: AuditCheck) -> str | None:
    """What a check wants, as JSON."""
    return json.dumps(check.parameters, sort_keys=True, default=str) if check.parameters else None


def actual(check: AuditCheck) -> str | None:
    """What it has found, in words; no values of records."""
    if check.error is not None:
        return f"could not be evaluated: {check.error}"
    if check.unexpected_count:
        return f"{check.unexpected_count} unexpected"
    return None if check.observed is None else json.dumps(check.observed, default=str)
