"""Jobs are named soundly and found by reference; a wrong reference says how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib import ConfigurationError, Job, StreamsBuilder, expect, load_job

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
from statelib import Job, StreamsBuilder

def build():
    builder = StreamsBuilder("copying")
    builder.stream("in").to("out")
    return Job("copying", builder.build())

job = build()
number = 7
"""


def topology():  # type: ignore[no-untyped-def]
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    return builder.build()


@pytest.mark.parametrize("attribute", ["", ":job", ":build"])
def test_a_job_is_loaded_from_a_file(tmp_path: Path, attribute: str) -> None:
    path = tmp_path / "my job.py"
    path.write_text(FILE)
    job = load_job(f"{path}{attribute}")
    assert job.name == "copying"
    assert job.topology.sink_topics == ("out",)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no.such.module:job", "no module named no"),
        ("missing.py:job", "no such file"),
        ("statelib.job:nothing", "not a job"),
    ],
)
def test_a_wrong_reference_is_explained(reference: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_job(reference)


def test_what_is_no_job_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.py"
    path.write_text(FILE)
    with pytest.raises(ConfigurationError, match="not a job"):
        load_job(f"{path}:number")


def test_names_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a job's name"):
        Job("a/b", topology())


def test_expectations_must_be_about_a_sink() -> None:
    known = {"out": (expect("expect_column_values_to_not_be_null", column="key"),)}
    assert Job("job", topology(), known).expectations["out"][0].kwargs == {"column": "key"}
    with pytest.raises(ConfigurationError, match=r"does not write.*topic other.*one of: out"):
        Job("job", topology(), {"other": ()})
