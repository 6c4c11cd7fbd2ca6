"""What state costs a task that does nothing with it, what checkpoints upload, restores, and point access to a store."""

from __future__ import annotations

import math
import os
import random
import shutil
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pyarrow as pa
from rocksdict import AccessType, Options, Rdict

from benchmarks.dataset import START_MS
from benchmarks.scale.kept_keys import KeptKeys
from benchmarks.scale.measurement import Figure, Measurement
from statelib import Stores
from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, JobLayout, plan
from statelib.operators.versioned.codec import encode_segment_key
from statelib.stores.rocksdb_options import DEFAULT_MEMORY_BYTES, database_options
from statelib.task import TaskWork, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.scale.replays import Replays
    from statelib.storage import StoredObject

_TASK = "0_0"
_VERSIONS, _RETENTION = 3, timedelta(hours=2)
_BETWEEN_MS = 600_000
_LookUp: TypeAlias = "tuple[Callable[[Any], object], Sequence[Any]]"
"""What is asked, and the keys that it is asked for."""


@dataclass
class State(Measurement):
    """W1 with ids that are remembered for good, in one task; and the versioned store by its public API.

    Attributes:
        keys: Ids in the state.
        records: Of the slice after which the checkpoint is looked at.
        store_keys: Of the versioned store, each with three versions.
        look_ups: At random keys.
        repeats: Of empty slices (their median counts) and of look-ups (the least counts).
    """

    name: ClassVar[str] = "state"

    keys: int = 1_000_000
    records: int = 10_000
    store_keys: int = 100_000
    look_ups: int = 100_000
    repeats: int = 5

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        kept = KeptKeys("W1", self.keys, self.records, 2)
        replays, _ = kept.begin(folder / "job")
        yield self._checkpoint(replays, kept)
        yield self._empty_slice(replays)
        yield self._restore(replays, folder)
        yield from self._point_access(folder)

    def _checkpoint(self, replays: Replays, kept: KeptKeys) -> Figure:
        """What of a checkpoint after a small slice was uploaded, though it was stored before."""
        before = {stored.path: stored for stored in _stored(replays)}
        done = replays.run(until_ms=kept.end_ms(1))
        after = _stored(replays)
        new = sum(stored.size_bytes for stored in after if stored.path not in before)
        again = sum(s.size_bytes for s in after if s.path in before and s.modified_ms != before[s.path].modified_ms)
        details = {"new, MB": new / 1e6, "state, MB": done.state_bytes / 1e6}
        name = f"bytes that a checkpoint uploads again, {self.records:,} records, {self.keys:,} ids"
        return Figure(name, float(again), "B", at_most=0, details=details)

    def _empty_slice(self, replays: Replays) -> Figure:
        """A task with state and without records, on a host that has run it before, and on one that has not."""
        (work,) = _empty_works(replays)
        seconds = {"cached": [], "restored": []}
        for repeat in range(self.repeats):
            seconds["cached"].append(_seconds(run_task, work, attempt=f"c{repeat}", clock=time.perf_counter))
            shutil.rmtree(f"{work.settings.state_dir}/cache")
            seconds["restored"].append(_seconds(run_task, work, attempt=f"r{repeat}", clock=time.perf_counter))
        details = {"on a host without a cache, s": median(seconds["restored"])}
        return Figure(
            f"empty slice over {self.keys:,} ids", median(seconds["cached"]), "s", at_most=0.5, details=details
        )

    def _restore(self, replays: Replays, folder: Path) -> Figure:
        """Beside a plain copy of the same files, written through to the disk as well."""
        manifest = CommitLog(replays.warehouse, replays.job.name).head().tasks[_TASK].state
        restored, copied = [], []
        for repeat in range(self.repeats):
            checkpoints = Checkpoints(replays.warehouse, replays.job.name, _TASK, folder / f"cache-{repeat}")
            restored.append(_seconds(checkpoints.restore, manifest, folder / f"restored-{repeat}"))
            copied.append(_seconds(_copy, folder / f"restored-{repeat}", folder / f"copied-{repeat}"))
        size = manifest.size_bytes / 1e6
        copy = size / min(copied)
        details = {"plain copy, MB/s": copy, "size, MB": size}
        return Figure("restore", size / min(restored), "MB/s", at_least=min(200.0, copy), details=details)

    def _point_access(self, folder: Path) -> Iterator[Figure]:
        """Look-ups in a store from disk, each beside bare ones of the row that answers it, whose key is bytes already.

        The bare database is the store's own, opened a second time with the same options.
        """
        names = [f"campaign-{n:09d}" for n in range(self.store_keys)]
        supplier = Stores.persistent_versioned_key_value_store("rates", _RETENTION)
        store = Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.int64()).build()
        with store.init(folder / "store"):
            for version in range(_VERSIONS):
                for name in names:
                    store.put(name, version, START_MS + version * _BETWEEN_MS)
        self._fill_plain(folder / "plain", names)
        options = database_options(DEFAULT_MEMORY_BYTES, compacts_itself=True)
        families = dict.fromkeys(["default", *store.family_names("rates")], options)
        bare = Rdict(str(folder / "store"), options, families, AccessType.read_only(False))
        plain = Rdict(str(folder / "plain"), access_type=AccessType.read_only(False))
        latest, segments = map(bare.get_column_family, store.family_names("rates"))
        chance = random.Random(7)
        chosen = chance.choices(names, k=self.look_ups)
        encoded = [name.encode() for name in chosen]
        newest = START_MS + (_VERSIONS - 1) * _BETWEEN_MS
        past = [chance.randrange(START_MS, newest) for _ in chosen]
        with store.init(folder / "store"):
            ends = [START_MS + ((time - START_MS) // _BETWEEN_MS + 1) * _BETWEEN_MS for time in past]
            rows, rows_before = (
                [
                    encode_segment_key(end // store.segment_interval_ms, key)
                    for end, key in zip(at, encoded, strict=True)
                ]
                for at in (ends, [newest] * len(encoded))
            )
            look_ups: dict[str, tuple[_LookUp, _LookUp, int]] = {
                "get": ((store.get, chosen), (latest.get, encoded), 2),
                "get as of, of the latest version": (
                    (lambda name: store.get(name, newest), chosen),
                    (latest.get, encoded),
                    3,
                ),
                "get as of, of the version before": (
                    (lambda name: store.get(name, newest - 1), chosen),
                    (segments.get, rows_before),
                    3,
                ),
                "get as of, at any time before": (
                    (lambda asked: store.get(*asked), list(zip(chosen, past, strict=True))),
                    (segments.get, rows),
                    3,
                ),
            }
            yield from self._compared(look_ups, (plain.get, encoded))
        for database in (latest, segments, bare, plain):
            database.close()

    def _fill_plain(self, folder: Path, names: Sequence[str]) -> None:
        """A database with no options set, with the latest values."""
        plain = Rdict(str(folder), Options(raw_mode=True))
        for name in names:
            plain[name.encode()] = (_VERSIONS - 1).to_bytes(8, "big")
        plain.close()

    def _compared(self, look_ups: Mapping[str, tuple[_LookUp, _LookUp, int]], plain: _LookUp) -> Iterator[Figure]:
        cases = {title: case[0] for title, case in look_ups.items()}
        bare = {f"bare: {title}": case[1] for title, case in look_ups.items()}
        for look_up, keys in (*cases.values(), *bare.values(), plain):
            if any(look_up(key) is None for key in keys):
                raise AssertionError("a look-up finds nothing")
        costs = self._least({**cases, **bare, "plain": plain})
        for title, (_, _, at_most) in look_ups.items():
            cost, base = costs[title], costs[f"bare: {title}"]
            details = {"us": cost * 1e6, "bare get, us": base * 1e6, "without options, us": costs["plain"] * 1e6}
            yield Figure(
                f"versioned store, {title}, against a bare get", cost / base, "times", at_most=at_most, details=details
            )

    def _least(self, look_ups: Mapping[str, _LookUp]) -> dict[str, float]:
        """CPU seconds of one look-up of each kind; in turn, so that all have the same machine."""
        least = dict.fromkeys(look_ups, math.inf)
        for _ in range(self.repeats):
            for title, (look_up, keys) in look_ups.items():
                began = time.process_time()
                for key in keys:
                    look_up(key)
                least[title] = min(least[title], (time.process_time() - began) / len(keys))
        return least


def _stored(replays: Replays) -> list[StoredObject]:
    return replays.warehouse.list(JobLayout(replays.job.name).state(_TASK))


def _empty_works(replays: Replays) -> list[TaskWork]:
    """The next slice's work without its records."""
    stages = replays.stages(plan(replays.job, replays.warehouse, now_ms=0))
    return [
        replace(
            work,
            planned=work.planned.model_copy(
                update={
                    "sources": tuple(
                        part.model_copy(update={"end_offset": part.start_offset, "records": 0})
                        for part in work.planned.sources
                    )
                }
            ),
        )
        for sub_topology in stages.sub_topologies
        for work in stages.works(sub_topology, [])
    ]


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for file in source.iterdir():
        shutil.copyfile(file, target / file.name)
        with (target / file.name).open("rb") as copied:
            os.fsync(copied.fileno())


def _seconds(do: Callable[..., object], *arguments: object, **options: object) -> float:
    began = time.perf_counter()
    do(*arguments, **options)
    return time.perf_counter() - began
