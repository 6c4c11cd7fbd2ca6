from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from hindstream.lineage.source_code import page_of, source_code
from statelib.job.job import load_job

if TYPE_CHECKING:
    from pathlib import Path

JOB = """
from hindstream import Job, StreamsBuilder

def job():
    builder = StreamsBuilder("job")
    builder.stream("a").to("b")
    return Job("job", builder.build())
"""


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://user:token@example.com/team/jobs.git", "https://example.com/team/jobs"),
        ("git@example.com:team/jobs.git", "https://example.com/team/jobs"),
        ("ssh://git@example.com:2222/team/jobs", "https://example.com/team/jobs"),
        ("http://example.com:8080/jobs/", "http://example.com:8080/jobs"),
        ("/srv/git/jobs.git", None),
        ("../jobs", None),
    ],
)
def test_the_page_of_a_remote(remote: str, page: str | None) -> None:
    assert page_of(remote) == page


def test_a_file_in_a_repository_and_outside(tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "jobs"
    folder.mkdir(parents=True)
    file = folder / "shop.py"
    file.write_text(JOB)
    found = source_code(load_job(str(file)).topology)
    assert found is not None
    assert (found.type, found.url) == ("file", file.as_uri())

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *arguments], cwd=folder.parent, check=True, capture_output=True)

    git("init")
    git("remote", "add", "origin", "git@example.com:team/jobs.git")
    git("add", ".")
    git("commit", "-m", "one")
    found = source_code(load_job(str(file)).topology)
    assert found is not None
    assert (found.type, found.path, found.branch) == ("git", "jobs/shop.py", "main")
    assert found.url == f"https://example.com/team/jobs/blob/{found.version}/jobs/shop.py"
