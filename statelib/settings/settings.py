"""Settings: read once, validated once, the same names everywhere.

A value comes from the first of these places that has it::

    command line   --memory-budget-bytes 1GiB
    environment    HINDSTREAM_MEMORY_BUDGET_BYTES=1GiB
    file           memory_budget_bytes = "1GiB"           in hindstream.toml
    default

A name that is no setting is an error wherever it stands: a misspelt setting must not be a default in disguise.
Credentials are no settings. They stay where the object store's client looks for them (``AWS_ACCESS_KEY_ID``, an
instance's role), because settings travel to Spark's workers and into reports.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ByteSize, Field, PrivateAttr, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from statelib.assignment.model import AssignorName
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import MILLISECOND, ms_since_1970
from statelib.settings.explained import ExplainedSetting, shown
from statelib.settings.local_dir import local_state_dir
from statelib.settings.max_future import MaxFuture, OnFutureRecord
from statelib.settings.semantics import EndOfInput, Semantics
from statelib.settings.setting_types import (
    Address,
    Instant,
    KafkaProperties,
    LatestTime,
    Names,
    Options,
    StorageOptions,
    TimeSpan,
)
from statelib.settings.storage_options import RequestLimits
from statelib.settings.value_sources import COMMAND_LINE, PREFIX, check_names, given_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LIMITS = RequestLimits()


class Settings(BaseSettings):
    """All settings of Hindstream. Made by `load_settings`; immutable."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True)

    warehouse: Address = Field(
        default="warehouse", min_length=1, description="root of all durable data: a directory, s3://, gs:// or abfss://"
    )
    web_url: Address | None = Field(
        default=None,
        description="where a web server shows the warehouse, for links from Airflow; none: Airflow shows it",
    )
    storage_options: StorageOptions = Field(
        default={}, description="options of the object store, such as aws_endpoint_url; no credentials"
    )
    storage_connect_timeout_ms: int = Field(
        default=_LIMITS.connect_timeout_ms, ge=1, description="timeout for a connection to the object store"
    )
    storage_request_timeout_ms: int = Field(
        default=_LIMITS.request_timeout_ms,
        ge=1,
        description="timeout for one try of a request to the object store, up to the last byte of its answer",
    )
    storage_retries: int = Field(
        default=_LIMITS.retries, ge=0, description="retries of a request to the object store, after the first try"
    )
    storage_retry_timeout_ms: int = Field(
        default=_LIMITS.retry_timeout_ms,
        ge=0,
        le=300_000,
        description="how long after the first try a retry may begin; at most 5 minutes, the lifetime of a signature",
    )
    storage_retry_backoff_ms: int = Field(
        default=_LIMITS.retry_backoff_ms, ge=1, description="the first pause between tries; later ones are longer"
    )
    storage_retry_backoff_max_ms: int = Field(
        default=_LIMITS.retry_backoff_max_ms, ge=1, description="the longest pause between tries"
    )
    source_options: StorageOptions = Field(
        default={},
        description="options of the object store that ingest reads files from; none: those of storage_options",
    )
    ingest_engine: Literal["auto", "local", "spark"] = Field(
        default="auto",
        description="where files of a lake are loaded: in this process, or on Spark; auto: on Spark beyond 1 GiB",
    )
    engine: Literal["spark", "local"] = Field(
        default="spark",
        description="where tasks run: on Spark, or one after the other in this process, faster for small slices",
    )
    state_dir: Path = Field(
        default=Path(".hindstream"),
        description="local folder for working copies of state; each host of a cluster replaces $NAME by its variable",
    )
    memory_budget_bytes: ByteSize = Field(
        default=ByteSize(512 * 2**20),
        ge=2**20,
        description="memory for the state of one task; beyond it, state spills to disk",
    )
    batch_records: int = Field(default=131_072, ge=1, description="records processed at a time; no effect on results")
    semantics: Semantics = Field(
        default="kip", description="what the KIPs promise, or what the shipped library of a version does"
    )
    on_bad_record: Literal["fail", "quarantine"] = Field(
        default="fail", description="a record that cannot be used ends the run, or goes to the job's quarantine topic"
    )
    on_processing_error: Literal["fail", "quarantine"] = Field(
        default="fail",
        description="a record for which a mapper, joiner, aggregator or other function fails ends the run, or is left "
        "out there, and its source record goes to the job's quarantine topic",
    )
    max_future: LatestTime | None = Field(
        default=None,
        description="the limit beyond which a record is from the future: a span after the record was archived (7d, "
        "36h), or a time (ISO 8601 with time zone); none: no limit, as in Kafka Streams",
    )
    on_future_record: OnFutureRecord = Field(
        default="quarantine",
        description="a record from the future goes to the job's quarantine topic, or is processed with its partition's "
        "largest timestamp so far (partition-time)",
    )
    on_late_record: Literal["drop", "topic"] = Field(
        default="drop", description="a record that is too late is dropped and counted, or kept in the topic <job>-late"
    )
    kafka: KafkaProperties = Field(
        default={},
        description="properties of the Kafka client (librdkafka's names), such as bootstrap.servers; no credentials",
    )
    kafka_java: KafkaProperties = Field(
        default={},
        description="further properties of the Java client with which Spark reads from Kafka; no credentials",
    )
    on_lost_record: Literal["fail", "skip"] = Field(
        default="fail",
        description="records that Kafka deleted before they were archived end the run, or are counted as lost",
    )
    publish_onto_records: bool = Field(
        default=False,
        description="whether a job may begin to publish to a Kafka topic that already holds records",
    )
    publish: Literal["all", "changed"] = Field(
        default="all",
        description="a Kafka topic that holds records of others, or some that were rolled back, gets only what differs "
        "from them (changed), or is refused",
    )
    until: Instant | None = Field(
        default=None, description="end of the slice in event time: ISO 8601 with time zone, or ms; none: all records"
    )
    end_of_input: EndOfInput = Field(
        default="hold",
        description="open windows wait in the state for the next slice (hold), or are emitted, and the job ends (seal)",
    )
    reset_stores: Names = Field(
        default=(),
        description="stores that may begin empty if their state does not fit the changed topology",
    )
    migrate_stores: Names = Field(
        default=(),
        description="tables' stores that may be migrated if only their kind or retention has changed; FORMER=NAME for "
        "any renamed store",
    )
    fill_stores: Names = Field(
        default=(),
        description="stores that get what they would hold if the job had always had them, by a replay of its history, "
        "if the topology has changed",
    )
    recreated_sources: Names = Field(
        default=(),
        description="sources whose archives were created again with the same records at the same offsets",
    )
    parallel_transfers: int = Field(
        default=4, ge=1, le=64, description="state files that a task fetches or stores at a time; each takes some MB"
    )
    changelogs: Names = Field(
        default=(),
        description="stores that write a changelog topic <job>-<store>-changelog, from the job's first run on",
    )
    fork: str | None = Field(
        default=None,
        min_length=1,
        description="run the job as its fork of this name, with its sinks renamed to <sink>.<fork>",
    )
    spark_master: str = Field(default="local[*]", min_length=1, description="Spark's master URL")
    spark_conf: Options = Field(default={}, description="further configuration of Spark")
    assignor: AssignorName = Field(
        default="sticky",
        description="how tasks are assigned to hosts of a cluster: where their state is, or as in KIP-441",
    )
    num_standby_replicas: int = Field(
        default=0, ge=0, description="copies of each task's state on other hosts of a cluster"
    )
    max_warmup_replicas: int = Field(
        default=2, ge=1, description="copies made at a time for hosts of a cluster that will run a task later"
    )
    acceptable_recovery_lag: ByteSize = Field(
        default=ByteSize(64 * 2**20),
        description="bytes of a task's state that a host may lack when the task moves to it",
    )
    rack: str | None = Field(
        default=None,
        description="failure domain of a host; each host of a cluster replaces $NAME by its variable",
    )
    wait_for_hosts: TimeSpan = Field(
        default=timedelta(seconds=10),
        ge=timedelta(0),
        description="how long a run on a cluster waits for the hosts of the last run",
    )
    standby_updates: Literal["wait", "background"] = Field(
        default="wait",
        description="whether maintenance waits until standbys have the new commit, or the next slice of this process "
        "begins meanwhile",
    )
    audit_engine: Literal["auto", "pandas", "screened", "spark"] = Field(
        default="auto",
        description="how Great Expectations checks rows: all in this process (pandas) or on Spark (spark), or only "
        "those that can fail, found by one pass over the files (screened); auto: pandas for few rows, else screened",
    )
    data_docs: Literal["report", "beside", "failed"] = Field(
        default="report",
        description="who writes the Data Docs of audits that have passed: the report phase, a process beside the run "
        "(beside; run and backfill default to it), or nobody (failed: only those of audits that fail)",
    )
    keep_commits: int = Field(default=10, ge=1, description="newest commits whose state stays restorable")
    keep_state_for: TimeSpan | None = Field(
        default=None,
        ge=timedelta(0),
        description="the time within which states that were the newest stay restorable too: 7d, 36h, 90min or ISO 8601",
    )
    target_file_bytes: ByteSize = Field(
        default=ByteSize(128 * 2**20),
        ge=2**12,
        description="size up to which maintenance merges small files of topics",
    )
    merge_source_files: bool = Field(
        default=True,
        description="whether maintenance merges small files of a job's sources too, where no job and no other program"
        " writes them",
    )
    keep_replaced_files_for: TimeSpan = Field(
        default=timedelta(days=7),
        ge=timedelta(0),
        description="how long merged files stay for running queries, and for Delta's time travel",
    )

    openlineage: bool = Field(
        default=False,
        description="whether runs are told to OpenLineage, as its client is configured: by OPENLINEAGE_URL or "
        "openlineage.yml",
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def keep_state_for_ms(self) -> int | None:
        """``keep_state_for`` in milliseconds."""
        return None if self.keep_state_for is None else self.keep_state_for // MILLISECOND

    @property
    def keep_replaced_files_for_ms(self) -> int:
        """``keep_replaced_files_for`` in milliseconds."""
        return self.keep_replaced_files_for // MILLISECOND

    @property
    def max_future_rule(self) -> MaxFuture | None:
        """``max_future`` as a plan has it."""
        if self.max_future is None:
            return None
        if isinstance(self.max_future, timedelta):
            return MaxFuture(span_ms=self.max_future // MILLISECOND)
        return MaxFuture(last_ms=ms_since_1970(self.max_future))

    @property
    def local_state_dir(self) -> Path:
        """``state_dir`` as this host has it, absolute.

        Raises:
            ConfigurationError: It names a variable that is not set here.
        """
        return local_state_dir(self.state_dir)

    @property
    def until_ms(self) -> int | None:
        """``until`` in milliseconds since 1970."""
        return self.until

    @property
    def store_options(self) -> dict[str, str]:
        """Options for a `statelib.storage.Storage` and for Delta tables: ``storage_options`` and the limits."""
        return self.storage_options | self._limits.options()

    @property
    def source_store_options(self) -> dict[str, str]:
        """Options of the object store that ``ingest`` reads from, and the limits."""
        return (self.source_options or self.storage_options) | self._limits.options()

    @property
    def _limits(self) -> RequestLimits:
        return RequestLimits(
            connect_timeout_ms=self.storage_connect_timeout_ms,
            request_timeout_ms=self.storage_request_timeout_ms,
            retries=self.storage_retries,
            retry_timeout_ms=self.storage_retry_timeout_ms,
            retry_backoff_ms=self.storage_retry_backoff_ms,
            retry_backoff_max_ms=self.storage_retry_backoff_max_ms,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Nothing but what it is made with: `load_settings` asks the sources, to know which of them a value is from."""
        return (init_settings,)

    def origin(self, name: str) -> str:
        """Where the value of a setting is from, for a person."""
        return self._origins.get(name, "default")

    def explained(self) -> list[ExplainedSetting]:
        """Each setting, its value, where that is from and what it does; credentials masked."""
        return [
            ExplainedSetting(name, shown(name, getattr(self, name)), self.origin(name), field.description or "")
            for name, field in type(self).model_fields.items()
        ]

    def explain(self) -> str:
        """Each setting, its value and where that is from, one a line; credentials masked."""
        found = self.explained()
        names, values = max(len(one.name) for one in found), max(len(one.value) for one in found)
        return "\n".join(f"{one.name:<{names}}  {one.value:<{values}}  {one.origin}" for one in found)


def load_settings(
    command_line: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    given_by: str = COMMAND_LINE,
) -> Settings:
    """Reads all settings.

    Args:
        command_line: By name of the setting; None as a value: not given.
        environ: Environment variables; None: the process'.
        file: The settings file; None: what ``HINDSTREAM_CONFIG`` names, else ``hindstream.toml`` in the working
            directory, if it is there.
        given_by: What has given those of the command line, if it is none: for errors, and `Settings.origin`.

    Raises:
        ConfigurationError: An unknown setting, a value that cannot be, a file that is not there or no TOML. It names
            the setting and the place.
    """
    environ = os.environ if environ is None else environ
    values, origins = given_settings(Settings, command_line or {}, environ, file, given_by)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise _invalid(error, origins) from None  # the original quotes the value, which may be a secret
    settings._origins.update(origins)  # noqa: SLF001 - private to this module
    return settings


def time_span_ms(text: str, setting: str) -> int:
    """A time span such as ``7d``, ``36h``, ``90min`` or ISO 8601's, in ms.

    Args:
        text: The time span.
        setting: What it is for, named in the error.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        found = TypeAdapter(TimeSpan).validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise ConfigurationError(reason, setting=setting, next_step="write 7d, 36h, 90min or ISO 8601") from None
    return found // MILLISECOND


def check_settings(given: Mapping[str, object], *, place: str, besides: Iterable[str] = ()) -> None:
    """Refuses what is no setting, and values that a setting cannot have, before any of them is used.

    Args:
        given: Values by name; None as a value: not given.
        place: Where, for the error.
        besides: What else could be given there, and may have been meant.

    Raises:
        ConfigurationError: A name is none of a setting, or a value cannot be one's.
    """
    check_names(Settings, given, place=place, besides=besides)
    values = {name: value for name, value in given.items() if value is not None}
    if not values:  # what is checked here takes the longest part of the time that a DAG of Airflow takes to be made
        return
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        raise _invalid(error, dict.fromkeys(given, place)) from None


def _invalid(error: ValidationError, origins: Mapping[str, str]) -> ConfigurationError:
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0])
    reason = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return ConfigurationError(
        f"the value of {name} cannot be used: {reason}",
        place=origins.get(name, "default"),
        next_step=f"{name} is {Settings.model_fields[name].description}",
    )
