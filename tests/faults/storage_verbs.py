"""What a `Storage` does over a store that fails by chance: one case for each seed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import RetryableError
from statelib.settings.storage_options import RequestLimits
from statelib.storage import Storage
from tests.faults.proxy import Fault, FaultProxy, SeededFaults

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storage.s3 import S3Server

_IMPATIENT = RequestLimits(request_timeout_ms=500, retries=2, retry_backoff_ms=1, retry_backoff_max_ms=5)
_CALLS = 40
_NAMES = tuple(f"folder/{name}" for name in "abcde")


@dataclass(frozen=True)
class Outcome:
    """How often each fault was met, and by verb how often it was done and how often it failed."""

    seed: int
    faults: Counter[Fault]
    done: Counter[str]
    failed: Counter[str]


def run_case(seed: int, server: S3Server, folder: Path) -> Outcome:
    """Makes random calls. Each gives what it should, or a `RetryableError` and nothing half-done.

    Raises:
        AssertionError: It was not so.
    """
    root = f"s3://warehouse/verbs/{folder.name}-{seed}"
    chance = random.Random(seed)
    faults = SeededFaults(seed, chance.choice((0.05, 0.2, 0.6)))
    with FaultProxy(server.endpoint, faults, slow_seconds=0.6) as proxy:
        options = server.options | {"aws_endpoint_url": proxy.endpoint} | _IMPATIENT.options()
        case = _Case(Storage(root, options), Storage(root, server.options), folder, chance, proxy.wait_until_quiet)
        for _ in range(_CALLS):
            case.call()
    return Outcome(seed, proxy.happened, case.done, case.failed)


class _Case:
    """The objects as they should be, beside a storage that fails and one that does not, over the same objects."""

    def __init__(
        self, failing: Storage, calm: Storage, folder: Path, chance: random.Random, quiet: Callable[[], None]
    ) -> None:
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._failing, self._calm, self._folder, self._chance, self._quiet = failing, calm, folder, chance, quiet
        self._objects: dict[str, bytes] = {}
        self._verbs: list[Callable[[str], None]] = [
            self.put, self.put_if_absent, self.upload, self.output, self.delete, self.get, self.get_range, self.size,
            self.list, self.download, self.input,
        ]  # fmt: skip

    def call(self) -> None:
        verb, name = self._chance.choice(self._verbs), self._chance.choice(_NAMES)
        try:
            verb(name)
        except RetryableError:
            self.failed[verb.__name__] += 1
        else:
            self.done[verb.__name__] += 1

    def put(self, name: str) -> None:
        data = self._data()
        self._write(name, data, lambda: self._failing.put(name, data))

    def put_if_absent(self, name: str) -> None:
        data = self._data()
        standing = self._objects.get(name)
        if standing is not None:
            assert self._failing.put_if_absent(name, data) is (standing == data)
            return

        def create() -> None:
            assert self._failing.put_if_absent(name, data) is True

        self._write(name, data, create)

    def upload(self, name: str) -> None:
        data = self._data(large=True)
        local = self._folder / "from"
        local.write_bytes(data)
        self._write(name, data, lambda: self._failing.upload(local, name))

    def output(self, name: str) -> None:
        data = self._data(large=True)
        name = f"{name}-{self._chance.randrange(1 << 30)}"

        def write() -> None:
            with self._failing.open_output(name) as output:
                for start in range(0, len(data), 1 << 20):
                    output.write(data[start : start + (1 << 20)])

        self._write(name, data, write)

    def delete(self, name: str) -> None:
        names = [name, f"{name}-none", *self._chance.sample(_NAMES, 2)]
        try:
            self._failing.delete(names)
        except RetryableError:
            self._quiet()
            for one in names:
                left = self._calm.get_if_present(one)
                assert left in (None, self._objects.get(one))
            self._calm.delete(names)
            raise
        finally:
            for one in names:
                self._objects.pop(one, None)
        assert not any(self._calm.exists(one) for one in names)

    def get(self, name: str) -> None:
        assert self._failing.get_if_present(name) == self._objects.get(name)

    def get_range(self, name: str) -> None:
        data = self._objects.get(name)
        if data:
            start = self._chance.randrange(len(data))
            assert self._failing.get_range(name, start, 100) == data[start : start + 100]

    def size(self, name: str) -> None:
        data = self._objects.get(name)
        assert self._failing.size_if_present(name) == (None if data is None else len(data))

    def list(self, name: str) -> None:
        found = {entry.path: entry.size_bytes for entry in self._failing.list("folder")}
        assert found == {path: len(data) for path, data in self._objects.items()}
        after = [entry.path for entry in self._failing.list("folder", after=name)]
        assert after == sorted(path for path in self._objects if path > name)

    def download(self, name: str) -> None:
        if name in self._objects:
            target = self._folder / f"to-{self._chance.randrange(1 << 30)}"
            try:
                self._failing.download(name, target)
            except RetryableError:
                assert not target.exists()
                raise
            assert target.read_bytes() == self._objects[name]

    def input(self, name: str) -> None:
        if name in self._objects:
            with self._failing.open_input(name) as opened:
                assert opened.read() == self._objects[name]

    def _data(self, *, large: bool = False) -> bytes:
        return self._chance.randbytes(self._chance.choice((0, 1, 5_000, 12_000_000 if large else 100_000)))

    def _write(self, name: str, data: bytes, write: Callable[[], None]) -> None:
        """The object is what it was or what it shall be, also where the call has failed."""
        try:
            write()
        except RetryableError:
            self._quiet()
            found = self._calm.get_if_present(name)
            assert found in (self._objects.get(name), data)
            if found is not None:
                self._objects[name] = found
            raise
        assert self._calm.get(name) == data
        self._objects[name] = data
