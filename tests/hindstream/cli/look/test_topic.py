"""``hindstream topic compact``: few files, the same records, and a message where it may not."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from tests.command import hindstream
from tests.topics.data import topic_records


@pytest.fixture
def folder(tmp_path):
    value = pa.struct([("id", pa.string()), ("amount", pa.float64()), ("tags", pa.list_(pa.int32()))])
    archive = TopicArchive.create(str(tmp_path / "w" / "topics" / "flights"), topic_schema(pa.string(), value), 2)
    for n in range(6):
        with archive.writer(0, attempt=f"a{n}") as writer:
            writer.write(topic_records([n], [1000 * n]))
        archive.commit(writer.close(), app_id="x", app_version=n + 1)
        archive = archive.refresh()
    return tmp_path


def test_small_files_become_one(folder) -> None:
    before = TopicArchive.open(str(folder / "w/topics/flights")).reader(0).read_all()
    result = hindstream("topic", "compact", "flights", "--warehouse", "w", cwd=folder)
    assert (result.returncode, result.stdout) == (0, "flights: 6 files became 1; it has 1 now.\n")
    assert TopicArchive.open(str(folder / "w/topics/flights")).reader(0).read_all() == before
    again = hindstream("topic", "compact", "flights", "--warehouse", "w", "--output", "json", cwd=folder)
    assert json.loads(again.stdout) == {"topic": "flights", "replaced": 0, "files": 0, "left": 1}


def test_a_topic_that_is_not_there(folder) -> None:
    result = hindstream("topic", "compact", "flihgts", "--warehouse", "w", cwd=folder)
    assert result.returncode == 78
    assert "there is no topic archive" in result.stderr
