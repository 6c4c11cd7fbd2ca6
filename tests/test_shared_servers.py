"""Tests that want a server run in the process that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared_servers import server_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("file", "server"),
    [
        ("tests/kafka/test_takeover.py", "broker"),  # wants Spark as well
        ("tests/hindstream/spark/frames/test_archive_frame.py", "spark"),
        ("tests/hindstream/doctor/test_examine.py", "spark"),
        ("tests/task/test_run.py", "tests/task/test_run.py"),
    ],
)
def test_files_and_their_servers(file: str, server: str) -> None:
    assert server_of(ROOT, file) == server


def test_no_file_wants_spark_unnoticed(request: pytest.FixtureRequest) -> None:
    files = {item.path for item in request.session.items if "spark" in getattr(item, "fixturenames", ())}
    assert {file for file in files if server_of(ROOT, str(file.relative_to(ROOT))) not in {"spark", "broker"}} == set()
