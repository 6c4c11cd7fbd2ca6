"""The files of a state directory, how it comes into its place, and what a kill leaves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from rocksdict import AccessType, Options, Rdict

from hindstream.kafka.local_state.directory import StateDirectory
from hindstream.kafka.local_state.layout import Layout, Segments
from hindstream.kafka.producer import Outgoing
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

KILLED_AT = ["directory.store-written", "directory.before-rename", "directory.placed"]
PLAIN, TIMESTAMPED = Layout(), Layout("keyValueWithTimestamp", has_timestamps=True)
WINDOWS = Layout(segments=Segments(120_000, 12))

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["hindstream.kafka.local_state.directory"])

Content = dict[str, dict[str, dict[bytes, bytes]]]


def contents(directory: Path) -> Content:
    """What is in its databases."""
    found: Content = {}
    for current in sorted(directory.rglob("CURRENT")):
        options = Options(raw_mode=True)
        families = dict.fromkeys(Rdict.list_cf(str(current.parent), options), options)
        with closing(Rdict(str(current.parent), options, families, AccessType.read_only(False))) as opened:
            name = str(current.parent.relative_to(directory))
            found[name] = {family: dict(opened.get_column_family(family).items()) for family in families}
        (current.parent / "rocksdict-config.json").unlink(missing_ok=True)  # the reader's
    return found


def long(number: int) -> bytes:
    return struct.pack(">q", number)


def window(key: bytes, start: int) -> bytes:
    return key + struct.pack(">qi", start, 0)


def offsets(last: int) -> dict[bytes, bytes]:
    return {b"app-s-changelog-3": long(last), b"status": long(0)}


def written(directory: Path, layout: Layout, records: list[tuple[bytes, bytes | None, int]]) -> Content:
    """What lies there when a task's share of a store has had some records."""
    state = StateDirectory(directory, "app")
    state.begin(replace=True)
    with state.store("0_3", "s", layout) as files:
        for record in records:
            files.add(Outgoing(*record))
        files.finish("app-s-changelog", 3, len(records) - 1 if records else None)
    state.place([])
    assert not list(directory.rglob("rocksdict*")), "the library's own file is of no use to Kafka Streams"
    return contents(directory / "app")


def test_a_key_value_store(tmp_path: Path) -> None:
    records = [(b"a", b"1", 5), (b"b", b"2", 6), (b"a", b"3", 7), (b"b", None, 8)]
    assert written(tmp_path, PLAIN, records) == {"0_3/rocksdb/s": {"default": {b"a": b"3"}, "offsets": offsets(3)}}
    assert written(tmp_path, TIMESTAMPED, records) == {
        "0_3/rocksdb/s": {"default": {}, "keyValueWithTimestamp": {b"a": long(7) + b"3"}, "offsets": offsets(3)}
    }


def test_segments_and_what_the_newest_record_has_expired(tmp_path: Path) -> None:
    keys = [window(b"a", 1_000), window(b"a", 60_000), window(b"b", 125_000), window(b"c", 200_000)]
    assert written(tmp_path, WINDOWS, [(key, b"1", 1) for key in keys]) == {
        "0_3/s/s.60000": {"default": {keys[1]: b"1"}, "offsets": offsets(3)},
        "0_3/s/s.120000": {"default": {keys[2]: b"1"}, "offsets": offsets(3)},
        "0_3/s/s.180000": {"default": {keys[3]: b"1"}, "offsets": offsets(3)},
    }


@pytest.mark.parametrize("layout", [PLAIN, TIMESTAMPED, WINDOWS])
def test_nothing_yet_or_to_be_restored(tmp_path: Path, layout: Layout) -> None:
    """With exactly-once an application deletes the whole task if one of its stores does not know its offset."""
    folder = "0_3/rocksdb/s" if layout.segments is None else "0_3/s/s.0"
    (found,) = written(tmp_path, layout, []).items()
    assert found[0] == folder
    assert {family: entries for family, entries in found[1].items() if entries} == {"offsets": offsets(-4)}
    restored = written(tmp_path, layout.to_be_restored(), [(b"a", b"1", 5)])
    assert restored == {folder: {"default": {}, "offsets": offsets(-4)}}


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "app" / "0_0").mkdir(parents=True)
    state = StateDirectory(tmp_path, "app")
    with pytest.raises(ConfigurationError) as caught:
        state.begin(replace=False)
    assert str(caught.value) == (
        f"there is local state of the application already (directory {tmp_path / 'app'})."
        " Next: name another folder, or give --replace, which deletes it"
    )
    state.begin(replace=True)
    assert not (tmp_path / "app").exists()
    (tmp_path / "app" / "0_1").mkdir(parents=True)  # an instance begins meanwhile
    with pytest.raises(ConfigurationError, match="cannot put the application's directory into its place"):
        state.place([])


def write_and_die(root: Path, kill_at: str) -> None:
    def observe(name: str) -> None:
        if name == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with observed(observe):
        written(root, TIMESTAMPED, [(b"a", b"1", 5), (b"b", b"2", 6)])


@pytest.mark.parametrize("kill_at", KILLED_AT)
def test_killed_and_written_again(tmp_path: Path, kill_at: str) -> None:
    """The application's directory is whole or not there."""
    process = _processes.Process(target=write_and_die, args=(tmp_path, kill_at))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    expected = written(tmp_path / "undisturbed", TIMESTAMPED, [(b"a", b"1", 5), (b"b", b"2", 6)])
    assert contents(tmp_path / "app") == (expected if kill_at == "directory.placed" else {})
    assert (tmp_path / "app").exists() == (kill_at == "directory.placed")
    assert written(tmp_path, TIMESTAMPED, [(b"a", b"1", 5), (b"b", b"2", 6)]) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app", "undisturbed"]
