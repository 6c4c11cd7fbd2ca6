"""What ``hindstream estimate`` prints."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hindstream.cli.main import app
from hindstream.estimate.calibration import keep_calibration
from tests.command import hindstream
from tests.hindstream.cli.test_json import JOB
from tests.hindstream.estimate.costs_of_one import calibration
from tests.task.pipeline import Pipeline


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from statelib import StreamsBuilder  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("estimate")
    builder = StreamsBuilder("kept")
    builder.stream("events").to("unused")
    pipeline = Pipeline(folder, builder.build(), "unused")
    pipeline.archive("events", [(f"k{n % 5}", n % 3, n) for n in range(900)], (pa.string(), pa.int64()), partitions=2)
    (folder / "job.py").write_text(JOB)
    keep_calibration(calibration(operators={"filter": 1e-6, "stream_aggregate": 1e-6, "to_stream": 1e-9}), folder / "c")
    return folder


def run(folder, *arguments: str):
    return hindstream("estimate", *arguments, cwd=folder)


def test_it_says_what_it_costs_what_limits_and_by_what(folder) -> None:
    result = run(folder, "job.py:job", "--engine", "local", "--calibration", "c")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("kept: 900 records, ")
    assert lines[0].endswith(" in one process.")
    assert any(line.startswith("topic out") and "300 records" in line for line in lines)
    assert any("stream_aggregate: " in line for line in lines)
    assert "What limits first: the start, and what a slice takes whatever it holds. Longer slices cost less." in lines
    assert any(line.startswith("By a sample of 900 records, too few to tell costs, and costs of the") for line in lines)
    assert lines[-1] == "Nothing was changed."


def test_as_json(folder) -> None:
    result = run(
        folder, "job.py:job", "--records", "9e9", "--slices", "24", "--cores", "16", "--calibration", "c",
        "--output", "json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (found,) = map(json.loads, result.stdout.splitlines())
    assert (found["job"], found["records"], found["slices"], found["cores"]) == ("kept", 9e9, 24, 16)
    assert found["engine"] == "spark"
    assert found["limit"] == "partitions"
    assert found["cpu_seconds"] == pytest.approx(sum(found["cpu_seconds_by_part"].values()))
    assert found["evidence"]["from"] == "sample"
    assert found["calibration"]["from"] == "c"
    assert {node["kind"] for node in found["nodes"]} == {
        "source", "filter", "stream_aggregate", "to_stream", "sink",
    }  # fmt: skip
    assert found["outputs"] == [{"topic": "out", "records": 3e9, "size_bytes": pytest.approx(3e9 * 8, rel=3)}]


def test_refusals(folder) -> None:
    for arguments, message in (
        ((), "there is no job to estimate"),
        (("job.py:job", "--calibration", "missing.json"), "the calibration cannot be read"),
        (("job.py:job", "--records", "5", "--bytes", "5"), "more than one amount of history is given"),
        (("job.py:job", "--warehouse", "nowhere"), "there is no such warehouse"),
    ):
        result = run(folder, *arguments)
        assert (result.returncode, result.stdout) == (78, ""), arguments
        assert message in result.stderr


def test_the_sample_is_as_large_as_the_room_says() -> None:
    import inspect  # noqa: PLC0415

    from hindstream.cli.look import commands as look_commands  # noqa: PLC0415
    from hindstream.estimate.sample import SAMPLE_RECORDS  # noqa: PLC0415

    assert inspect.signature(look_commands.estimate).parameters["sample"].default == SAMPLE_RECORDS
    assert any(command.callback is look_commands.estimate for command in app.registered_commands)
