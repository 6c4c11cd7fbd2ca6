"""Who looks for a topic that a job has not written to yet is told which job, and not to archive it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib import StreamsBuilder
from statelib.commits.archives import open_archive
from statelib.commits.publication.topic_writers import sought, writer_of
from statelib.errors.kinds import ConfigurationError
from statelib.topics.delta.log import ArchiveNotFoundError
from tests.command import hindstream
from tests.task.pipeline import Pipeline


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    builder = StreamsBuilder("copying")
    builder.stream("events").to("copies")
    made = Pipeline(tmp_path, builder.build(), "copying")
    made.archive("events", [("k", 1, 1)], (pa.string(), pa.int64()))
    made.plan()
    return made


@pytest.mark.parametrize(("topic", "step"), [
    ("copying-late", "--set on_late_record=topic"),
    ("copying-quarantine", "--set on_bad_record=quarantine"),
    ("copies", "hindstream status copying"),
])  # fmt: skip
def test_a_topic_of_a_job(pipeline, topic, step) -> None:
    told = pytest.raises(ConfigurationError, match="nothing has been written to this topic yet")
    with told as found, sought(pipeline.warehouse, topic):
        open_archive(pipeline.warehouse, topic)
    assert step in found.value.next_step
    assert found.value.place == {"topic": topic, "job": "copying"}


def test_a_topic_of_nobody(pipeline) -> None:
    assert writer_of(pipeline.warehouse, "elsewhere") is None
    told = pytest.raises(ArchiveNotFoundError, match="archive the topic first")
    with told, sought(pipeline.warehouse, "elsewhere"):
        open_archive(pipeline.warehouse, "elsewhere")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("show",), ("topics",), ("topic", "history"), ("topic", "compact")])
def test_every_command_says_it(pipeline, tmp_path, command) -> None:
    result = hindstream(*command, "copying-late", cwd=tmp_path)
    assert result.returncode == 78
    assert "nothing has been written to this topic yet (topic copying-late, job copying)" in result.stderr
