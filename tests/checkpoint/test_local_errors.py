"""A host without space, without permission, with a directory where a file belongs: told, and the next try succeeds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from statelib.errors.kinds import ConfigurationError, RetryableError
from tests.checkpoint.test_checkpoints import JOB, TASK, Checkpoints, contents, storage, task

__all__ = ["storage", "task"]


@pytest.mark.parametrize(
    ("number", "kind", "next_step"),
    [
        (errno.ENOSPC, RetryableError, "free space"),
        (errno.EACCES, ConfigurationError, "who owns the directory"),
        (errno.EISDIR, ConfigurationError, "move what is in its place away"),
        (errno.EIO, RetryableError, "run the same command again"),
    ],
)
@pytest.mark.parametrize(
    ("where", "path"),
    [("write_bytes", "verified.json"), ("replace", "verified.json"), ("rename", "there.partial"), ("mkdir", "there")],
)
def test_a_restore_that_fails_leaves_nothing_and_the_next_one_succeeds(
    task, storage, tmp_path, monkeypatch, number, kind, next_step, where, path
):
    manifest = task.slice(a="1")
    host = tmp_path / "other"
    host.mkdir()
    with monkeypatch.context() as patched:
        original = getattr(Path, where)

        def fail(self, *arguments, **options):
            if path in self.name and host in self.parents:
                raise OSError(number, os.strerror(number), str(self))
            return original(self, *arguments, **options)

        patched.setattr(Path, where, fail)
        with pytest.raises(kind, match=rf"cannot restore the state.*{path}.*Next: .*{next_step}"):
            Checkpoints(storage, JOB, TASK, host / "cache").restore(manifest, host / "there")
    assert sorted(entry.name for entry in host.iterdir()) in ([], ["cache"], ["cache", "cache.verified.json"])
    Checkpoints(storage, JOB, TASK, host / "cache").restore(manifest, host / "there")
    assert contents(host / "there") == {"a": "1" * 1000}


def test_a_directory_in_place_of_the_record_is_named(task, storage, tmp_path):
    manifest = task.slice(a="1")
    (tmp_path / "other" / "cache.verified.json").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"Is a directory.*cache.verified.json.*move what is in its place"):
        Checkpoints(storage, JOB, TASK, tmp_path / "other" / "cache")
    (tmp_path / "other" / "cache.verified.json").rmdir()
    Checkpoints(storage, JOB, TASK, tmp_path / "other" / "cache").restore(manifest, tmp_path / "there")


def test_a_file_in_place_of_the_cache_is_named(task, storage, tmp_path):
    manifest = task.slice(a="1")
    (tmp_path / "cache").write_text("what I kept here")
    with pytest.raises(ConfigurationError, match=r"cannot restore the state.*/cache.*move what is in its place"):
        Checkpoints(storage, JOB, TASK, tmp_path / "cache").restore(manifest, tmp_path / "there")
    assert not (tmp_path / "there").exists()
    assert (tmp_path / "cache").read_text() == "what I kept here"
