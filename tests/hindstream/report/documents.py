"""Runs of the demo's shape, made through the documents' own models, without running anything."""

from __future__ import annotations

from hindstream.demo import NAME
from hindstream.demo.job import job
from statelib.commits import CommitLog, JobLayout
from statelib.commits.layout import run_id
from statelib.documents.manifests import (
    Audit,
    AuditCheck,
    Commit,
    CommittedTask,
    SinkFile,
    Staged,
    StateFile,
    StateManifest,
    StoreSize,
    TaskOutcome,
    TaskPosition,
)
from statelib.documents.plans import Plan, PlannedTask, SourceRange, SourceTopic
from statelib.metrics.node_metrics import LATENESS_BOUNDS_MS, Lateness, NodeMetrics
from statelib.settings.semantics import EndOfInput
from statelib.storage import Storage
from statelib.topics.files import ArchiveFile
from statelib.topics.future_records import FutureRecord

TOPOLOGY = job().topology
MONTH_MS = 30 * 86_400_000
FLIGHTS, DUPLICATES, LATE, HELD, WINDOWS, WEATHER = 28_600, 560, 2, 36, 1_620, 2_180
"""Of each month."""

FROM_2100 = FutureRecord(topic="flights", partition=0, offset=117, timestamp_ms=4_102_444_800_000, in_slice=False)


def make_run(
    storage: Storage,
    number: int,
    *,
    attempt: int = 1,
    passes: bool = True,
    end_of_input: EndOfInput = "hold",
    future_records: tuple[FutureRecord, ...] = (),
) -> str:
    """A run of month ``number`` (from 1): staged, audited and, if it passes, committed."""
    layout, run = JobLayout(NAME), run_id(number, attempt)
    plan = _plan(number, run).model_copy(update={"end_of_input": end_of_input, "future_records": future_records})
    staged = Staged(run_id=run, tasks=(_outcome(number, run),), seconds=1.4)
    storage.put(layout.plan(run), plan.encode())
    storage.put(layout.staged(run), staged.encode())
    storage.put(layout.audit(run), _audit(run, passes=passes).encode())
    if passes:
        CommitLog(storage, NAME).create(_commit(plan, staged))
    return run


def _plan(number: int, run: str) -> Plan:
    flights = SourceRange(
        topic="flights", partition=0, start_offset=(number - 1) * FLIGHTS, end_offset=number * FLIGHTS, records=FLIGHTS
    )
    weather = SourceRange(
        topic="weather", partition=0, start_offset=(number - 1) * WEATHER, end_offset=number * WEATHER, records=WEATHER
    )
    return Plan(
        job=NAME,
        run_id=run,
        commit=number,
        fingerprint=TOPOLOGY.fingerprint,
        until_ms=1_357_016_400_000 + number * MONTH_MS,
        sources=tuple(
            SourceTopic(topic=t, delta_version=1, partitions=1, delta_schema="{}") for t in ("weather", "flights")
        ),
        tasks=(PlannedTask(task_id="0_0", sub_topology=0, partition=0, sources=(weather, flights)),),
        sink_partitions={"delays-by-hour": 1},
        created_at_ms=1_700_000_000_000 + number,
    )


def _outcome(number: int, run: str) -> TaskOutcome:
    file = ArchiveFile(
        path=f"partition=0/{number:020d}-{run}.parquet",
        partition=0,
        rows=WINDOWS,
        size_bytes=41_000,
        first_offset=(number - 1) * WINDOWS,
        last_offset=number * WINDOWS - 1,
        min_timestamp_ms=1,
        max_timestamp_ms=2,
    )
    state = StateManifest(files=(StateFile(name="000012.sst", sha256="0" * 64, size_bytes=180_000 + 9_000 * number),))
    return TaskOutcome(
        task_id="0_0",
        attempt=f"{run}-0",
        sinks=(SinkFile(topic="delays-by-hour", file=file),),
        repartitions=(),
        state=state,
        position=TaskPosition(task_id="0_0", commit=number, fingerprint=TOPOLOGY.fingerprint),
        metrics=_metrics(number),
        stores={
            "weather-by-origin.latest": StoreSize(size_bytes=6_000, keys=3),
            "weather-by-origin.segments": StoreSize(size_bytes=90_000 + 400 * number, keys=210),
            "flights-once-STORE.entries": StoreSize(size_bytes=160_000 - 3_000 * number, keys=2_700),
            "flights-once-STORE.index": StoreSize(size_bytes=70_000, keys=2_700),
            "delays": StoreSize(size_bytes=4_000, keys=36),
            "delays.by-start": StoreSize(size_bytes=1_000, keys=36),
            "final-delays-store": StoreSize(size_bytes=5_000, keys=36),
        },
        seconds={"restore": 0.08, "read": 0.21, "process": 0.52, "write": 0.11, "checkpoint": 0.2},
        peak_memory_bytes=310 << 20,
        host="localhost",
    )


def _metrics(number: int) -> dict[str, NodeMetrics]:
    once = FLIGHTS - DUPLICATES
    counted = once - LATE
    before = HELD if number > 1 else 0
    emitted = WINDOWS
    weather, flights = (source.name for source in TOPOLOGY.sub_topologies[0].all_sources)
    counts = [0] * (len(LATENESS_BOUNDS_MS) + 1)
    counts[0], counts[4:13] = once - 11_000, [900, 2_600, 3_100, 2_300, 1_400, 500, 180, 18, 2]
    lateness = Lateness(counts, total_ms=once * 340_000, max_ms=58_000_000)
    return {
        weather: NodeMetrics(WEATHER, WEATHER, accounts={"forwarded": WEATHER}),
        flights: NodeMetrics(FLIGHTS, FLIGHTS, accounts={"forwarded": FLIGHTS}),
        TOPOLOGY.nodes[1].name: NodeMetrics(WEATHER, WEATHER, accounts={"stored": WEATHER}),
        "flights-once": NodeMetrics(FLIGHTS, once, accounts={"forwarded": once, "duplicate": DUPLICATES}),
        "flights-and-weather": NodeMetrics(once, once, accounts={"joined": once - 120, "unmatched": 120}),
        "delays-so-far": NodeMetrics(
            once,
            counted,
            accounts={"aggregated": counted, "late": LATE},
            dropped={"late": LATE},
            counters={"late-record-drop": LATE},
            gauges={"open-windows": HELD + 1},
            lateness=lateness,
        ),
        "final-delays": NodeMetrics(
            counted,
            emitted,
            held_before=before,
            held_after=HELD,
            accounts={"emitted": emitted, "replaced": counted + before - emitted - HELD},
            counters={"suppression-emit": emitted},
            gauges={"suppression-buffer-count": HELD, "suppression-buffer-size": 2_048},
        ),
        "delays-by-hour": NodeMetrics(emitted, 0, accounts={"written": emitted}),
    }


def _audit(run: str, *, passes: bool) -> Audit:
    checks = tuple(
        AuditCheck(topic="delays-by-hour", expectation=kind, parameters=parameters, success=True, observed=observed)
        for kind, parameters, observed in (
            ("expect_column_values_to_not_be_null", {"column": "key.key"}, None),
            ("expect_column_values_to_be_between", {"column": "value.flights", "min_value": 1, "max_value": 60}, None),
            ("expect_table_row_count_to_equal", {"value": WINDOWS}, WINDOWS),
        )
    )
    failed = AuditCheck(
        topic="delays-by-hour",
        expectation="expect_column_values_to_be_between",
        parameters={"column": "value.max_wind", "min_value": 0, "max_value": 150.0},
        success=passes,
        unexpected_count=0 if passes else 1,
        unexpected_rows=() if passes else ({"key.key": "EWR", "value.max_wind": 1048.36, "offset": 4711},),
    )
    docs = f"data_docs/validations/{run}.html"
    return Audit(run_id=run, success=passes, checks=(*checks, failed), data_docs=docs, seconds=0.9)


def _commit(plan: Plan, staged: Staged) -> Commit:
    return Commit(
        job=NAME,
        commit=plan.commit,
        run_id=plan.run_id,
        fingerprint=plan.fingerprint,
        until_ms=plan.until_ms,
        end_of_input=plan.end_of_input,
        sources=plan.sources,
        tasks={task.task_id: CommittedTask(state=task.state, position=task.position) for task in staged.tasks},
        sinks=tuple(sink for task in staged.tasks for sink in task.sinks),
        created_at_ms=plan.created_at_ms + 3_000,
    )
