"""A guard against regressions: ``./dev bench --check`` and ``./dev bench --record``.

Small jobs, which together go through every kernel of the engine, are replayed in this process, without Spark and audit.
What each costs is held against pyarrow that reads and writes the same records, right before it and right after: such a
ratio is far steadier than seconds are. From one machine to the next all ratios may still shift alike, by a fifth: then
record an older commit there, and check. ``recorded.json`` has the ratios that were last found good.

The start is guarded too: whole local runs of a small slice, from cold, with nothing to do, and in a session, held
against a Python that imports pyarrow and pandas.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.dataset import CLICKS, RATES, Dataset, Parameters
from benchmarks.measure import measure
from benchmarks.scale.replays import Replays
from benchmarks.scale.waiting import Waiting
from benchmarks.works import WORKS
from benchmarks.works import job as work_job
from statelib import (
    BufferConfig,
    Job,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    sum_,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

RECORDED = Path(__file__).with_name("recorded.json")
TOLERANCE = 1.3
"""How many times the recorded ratio is a regression: more than what noise does to the least of several repeats."""

START_TOLERANCE = 1.4
"""The same of starts, which are processes, and noisier."""

STARTS = ("start", "start-nothing-to-do", "start-in-session")
"""What `starts` measures."""

_BARE = [sys.executable, "-c", "import pandas, pyarrow.parquet"]

PARAMETERS = Parameters(records=400_000, partitions=1)
_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_AGGREGATES = {"clicks": count(), "amount": sum_("amount")}
_ANSWER = "answer"


def _sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(5 * _SECOND, _MINUTE)
    builder.stream(CLICKS).group_by_key().windowed_by(windows).aggregate(_AGGREGATES).to_stream().to(_ANSWER)


def _sliding_windows(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_and_grace(_SECOND / 10, _MINUTE)
    builder.stream(CLICKS).group_by_key().windowed_by(windows).aggregate(_AGGREGATES).to_stream().to(_ANSWER)


def _hopping_windows(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(_MINUTE, 10 * _MINUTE).advance_by(20 * _SECOND)
    builder.stream(CLICKS).group_by_key().windowed_by(windows).aggregate(_AGGREGATES).to_stream().to(_ANSWER)


def _deduplicate_by_key(builder: StreamsBuilder) -> None:
    builder.stream(CLICKS).deduplicate_by_key(_SECOND).to(_ANSWER)


def _repartition(builder: StreamsBuilder) -> None:
    builder.stream(CLICKS).group_by("currency").aggregate(_AGGREGATES).to_stream().to(_ANSWER)


def _time_limit(builder: StreamsBuilder) -> None:
    suppressed = Suppressed.until_time_limit(_MINUTE, BufferConfig.unbounded())
    builder.stream(CLICKS).group_by_key().aggregate(_AGGREGATES).suppress(suppressed).to_stream().to(_ANSWER)


def _table_join(builder: StreamsBuilder) -> None:
    cost = {"cost": pc.multiply(pc.field("left", "amount"), pc.field("right", "rate"))}
    builder.stream(CLICKS).to_table().join(builder.table(RATES), cost).to_stream().to(_ANSWER)


def _foreign_key_join(builder: StreamsBuilder) -> None:
    rates = builder.table(RATES)
    joined = {"amount": "left.amount", "rate": "right.rate"}
    by_id = builder.stream(CLICKS).map_values({"amount": "amount", "of": "key"}).to_table()
    by_id.join(rates, joined, foreign_key="of").to_stream().to(_ANSWER)


def _regrouped_table(builder: StreamsBuilder) -> None:
    builder.stream(CLICKS).to_table().group_by("currency", "amount").aggregate({"sum": sum_("value")}).to_stream().to(
        _ANSWER
    )


def _stream_join(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace(2 * _SECOND, 20 * _SECOND)
    joined = {"id": "left.id", "rate": "right.rate"}
    builder.stream(CLICKS).left_join(builder.stream(RATES), joined, windows).to(_ANSWER)


OPERATORS: dict[str, Callable[[StreamsBuilder], None]] = {
    build.__name__.strip("_").replace("_", "-"): build
    for build in (
        _sessions, _sliding_windows, _hopping_windows, _deduplicate_by_key, _repartition, _time_limit, _table_join,
        _foreign_key_join, _regrouped_table, _stream_join,
    )
}  # fmt: skip


SPILLING = {"W1-spilling": ("W1", 12 << 20)}
"""Works once more with a memory budget, in bytes, which their state exceeds."""


def jobs() -> dict[str, Job]:
    """The jobs by name: the works, and one an operator."""
    made = {name: work_job(name) for name in WORKS}
    made |= {name: work_job(work) for name, (work, _) in SPILLING.items()}
    for name, build in OPERATORS.items():
        builder = StreamsBuilder(name)
        build(builder)
        made[name] = Job(name, builder.build())
    return made


def ratios(repeats: int, names: Collection[str], parameters: Parameters = PARAMETERS) -> dict[str, float]:
    """By job, its CPU time as a multiple of what pyarrow takes to read and write the clicks; the least of each."""
    wanted = {name: job for name, job in jobs().items() if name in names}
    floors: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="hindstream-guard-") as folder:
        dataset = Dataset.generate(Path(folder) / "dataset", parameters)
        for repeat in range(repeats + 1):
            for name, job in wanted.items():
                budget = {"memory_budget_bytes": SPILLING[name][1]} if name in SPILLING else {}
                before = _copy(dataset, Path(folder))
                done = Replays(Path(folder) / f"{name}-{repeat}", job, dataset, **budget).run()
                after = _copy(dataset, Path(folder))
                if repeat:  # the first one warms up
                    floors.setdefault(name, []).extend((before, after))
                    costs.setdefault(name, []).append(done.phases["replay"].cpu_seconds)
    # Neighbours alone: the least of many more runs would be one of a luckier moment than the job ever had.
    return {name: min(seconds) / min(floors[name]) for name, seconds in costs.items()}


def _copy(dataset: Dataset, folder: Path) -> float:
    """CPU seconds that pyarrow needs to read and write the clicks."""
    started = time.process_time()
    for file in dataset.files(CLICKS, 0):
        table = pq.ParquetFile(file, page_checksum_verification=True).read(use_threads=False)
        pq.write_table(table, folder / "copy.parquet", compression="zstd", write_page_checksum=True)
    return time.process_time() - started


def starts(repeats: int) -> dict[str, float]:
    """By start, its CPU time as a multiple of what a bare Python's takes right before and after."""
    with tempfile.TemporaryDirectory(prefix="hindstream-guard-") as folder:
        bare = [_bare_seconds(Path(folder)) for _ in range(repeats)]
        found = Waiting(repeats=repeats).local_starts(Path(folder))
        bare += [_bare_seconds(Path(folder)) for _ in range(repeats)]
    return {name: cost.cpu_seconds / median(bare) for name, cost in found.items()}


def _bare_seconds(folder: Path) -> float:
    """CPU seconds."""
    return measure(_BARE, environment=dict(os.environ), log=folder / "bare.log").cpu_seconds


def record(repeats: int) -> None:
    """Measures, and writes down what was found."""
    measured = ratios(repeats, jobs()) | starts(repeats)
    found = {name: round(ratio, 2) for name, ratio in measured.items()}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(*(f"{name:20} {ratio:6.2f}" for name, ratio in found.items()), sep="\n")


def check(repeats: int) -> bool:
    """Measures, prints each ratio beside the recorded one, and says whether none is a regression.

    What seems to be one is measured once more.
    """
    recorded: dict[str, float] = json.loads(RECORDED.read_text(encoding="utf-8"))
    found = ratios(repeats, jobs()) | starts(repeats)
    slower = _slower(found, recorded)
    if slower:
        again = [name for name in slower if name not in STARTS]
        once_more = (ratios(repeats, again) if again else {}) | (starts(repeats) if len(again) < len(slower) else {})
        found |= {name: min(found[name], ratio) for name, ratio in once_more.items()}
        slower = _slower(found, recorded)
    print(
        f"{'':20}    now  recorded  (times pyarrow reading and writing; starts: a Python that imports pyarrow, pandas)"
    )
    for name, ratio in found.items():
        mark = "  SLOWER" if name in slower else ""
        print(f"{name:20} {ratio:6.2f}    {recorded.get(name, float('nan')):6.2f}{mark}")
    shift = median(ratio / recorded[name] for name, ratio in found.items() if name in recorded)
    print(f"in the middle {shift:.2f} times what is recorded: what all share, or the machine")
    print(f"slower than recorded: {', '.join(slower) or 'none'}")
    return not slower


def _slower(found: dict[str, float], recorded: dict[str, float]) -> list[str]:
    return [
        name
        for name, ratio in found.items()
        if ratio > (START_TOLERANCE if name in STARTS else TOLERANCE) * recorded.get(name, float("inf"))
    ]
