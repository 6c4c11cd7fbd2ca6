"""What a dry run writes only it sees."""

from __future__ import annotations

import pytest

from statelib.errors.kinds import InternalError
from statelib.storage import Storage
from statelib.storage.dry_run import DryRunStorage


@pytest.fixture
def storage(tmp_path) -> Storage:
    storage = Storage(str(tmp_path))
    storage.put("a/there", b"old")
    return storage


def test_what_is_written_stays_in_it(storage, tmp_path) -> None:
    dry = DryRunStorage(str(tmp_path))
    dry.put("a/new", b"12345")
    dry.put("a/there", b"other")
    assert dry.put_if_absent("a/second", b"1")
    assert not dry.put_if_absent("a/second", b"2")
    assert dry.put_if_absent("a/second", b"1"), "the same content counts as this call's"
    assert (dry.get("a/new"), dry.get("a/there"), dry.get_if_present("a/none")) == (b"12345", b"other", None)
    assert (dry.size("a/new"), dry.exists("a/none"), dry.size("a/second")) == (5, False, 1)
    assert dry.within("a").get("new") == b"12345"
    dry.sync("a")
    assert [(entry.path, entry.size_bytes) for entry in storage.list()] == [("a/there", 3)]


def test_what_is_there_is_not_written_again(storage, tmp_path) -> None:
    dry = DryRunStorage(str(tmp_path))
    assert not dry.put_if_absent("a/there", b"new")
    assert dry.get("a/there") == b"old"


@pytest.mark.parametrize(
    "change",
    [
        lambda dry, file: dry.delete("a/there"),
        lambda dry, file: dry.copy("a/there", "b"),
        lambda dry, file: dry.upload(file, "b"),
        lambda dry, file: dry.open_output("b"),
    ],
    ids=["delete", "copy", "upload", "open_output"],
)
def test_everything_else_that_changes_something_is_refused(storage, tmp_path, change) -> None:
    with pytest.raises(InternalError, match="a dry run"):
        change(DryRunStorage(str(tmp_path)), tmp_path / "a" / "there")
    assert storage.get("a/there") == b"old"
