"""Slices over an object store that answers late: requests, which the history must not add to, and seconds."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from benchmarks.dataset import START_MS, Dataset, Parameters
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.replays import Replays, typical
from benchmarks.works import job
from statelib.storage import Storage
from tests.faults.proxy import Fault, FaultProxy
from tests.storage.s3 import s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.sharedctypes import Synchronized
    from pathlib import Path

    from benchmarks.scale.replays import Slice
    from tests.faults.proxy import Request

_MINUTE_MS = 60_000
_WORKS = ("W1", "W4")  # the one that writes most, and the one with most stores


@dataclass
class ObjectStore(Measurement):
    """A server that speaks S3, behind a proxy that counts requests and holds each answer back.

    Attributes:
        commits: The last of the history.
        steady_from: The slice that the last one is held against: windows close, and old state goes as fast as it comes.
        partitions: Of the topics.
        slice_records: Of a slice, which is a minute of event time.
        answer_ms: How late an answer is.
    """

    name: ClassVar[str] = "object-store"

    commits: int = 36
    steady_from: int = 26
    partitions: int = 16
    slice_records: int = 1_000
    answer_ms: int = 20

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        dataset = self.dataset(folder / "data")
        for work in _WORKS:
            (folder / work).mkdir()
            slices = self._slices(folder / work, dataset, work)
            size = f"{work}, {self.partitions} partitions"
            requests = [{phase: cost.requests for phase, cost in one.phases.items()} for one in slices]
            begin, end = (typical(requests, around) for around in (self.steady_from, self.commits))
            name = f"requests of slice {self.commits}, against slice {self.steady_from}: {size}"
            details = {phase: f"{begin[phase]:g} -> {end[phase]:g}" for phase in begin}
            yield Figure(name, sum(end.values()) / sum(begin.values()), "times", at_most=1.2, details=details)
            seconds = typical([{p: cost.wall_seconds for p, cost in s.phases.items()} for s in slices], self.commits)
            name = f"slice over a store that answers after {self.answer_ms} ms: {size}"
            yield Figure(name, sum(seconds.values()), "s", details={f"{p}, s": value for p, value in seconds.items()})

    def dataset(self, folder: Path) -> Dataset:
        """A minute more than all slices."""
        parameters = Parameters(
            records=self.slice_records * (self.commits + 1),
            records_per_second=self.slice_records / 60,
            partitions=self.partitions,
            rate_minutes=60,
        )
        return Dataset.generate(folder, parameters)

    def _slices(self, folder: Path, dataset: Dataset, work: str) -> list[Slice]:
        with s3_server(folder) as server:
            os.environ.update(server.credentials)
            _upload(dataset, Storage("s3://warehouse", server.settings))
            with _late(server.endpoint, self.answer_ms / 1000) as (endpoint, requests):
                options = server.settings | {"aws_endpoint_url": endpoint}
                replays = Replays(
                    folder,
                    job(work),
                    is_audited=True,
                    warehouse="s3://warehouse",
                    requests=requests,
                    storage_options=options,
                )
                return [replays.run(until_ms=START_MS + n * _MINUTE_MS) for n in range(1, self.commits + 1)]


def _upload(dataset: Dataset, warehouse: Storage) -> None:
    for path in sorted((dataset.folder / "topics").rglob("*")):
        if path.is_file():
            warehouse.upload(path, str(path.relative_to(dataset.folder)))


@contextmanager
def _late(upstream: str, seconds: float) -> Iterator[tuple[str, Callable[[], int]]]:
    """A proxy before ``upstream``, in a process of its own: its address, and how many requests there have been."""
    spawn = multiprocessing.get_context("spawn")
    requests: Synchronized[int] = spawn.Value("L", 0)
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(upstream, seconds, requests, there))
    process.start()
    there.close()
    try:
        yield here.recv(), lambda: requests.value
    finally:
        here.close()  # which ends it
        process.join()


def _serve(upstream: str, seconds: float, requests: Synchronized[int], there: Connection) -> None:
    def counted(_: Request) -> Fault:
        with requests.get_lock():
            requests.value += 1
        return Fault.SLOW

    with FaultProxy(upstream, counted, slow_seconds=seconds) as proxy:
        there.send(proxy.endpoint)
        there.poll(None)
