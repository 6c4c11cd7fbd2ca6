"""A driver's code is compared with that of the task which has submitted it: by the files that the job is made of."""

from __future__ import annotations

import re
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.submission.same_code import code_of, load_same
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.job.user_code import forget_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = """
from beside_of_it import MORE
from statelib import Job, StreamsBuilder

builder = StreamsBuilder("orders")
builder.stream("orders").map_values({"more": MORE}).to("all-orders")
job = Job("orders", builder.build())
"""
FILES = {"job.py": JOB, "beside_of_it.py": "MORE = lambda columns: columns.column('key')"}
"""Its topology has the same fingerprint whatever ``MORE`` does."""

HOST = re.escape(socket.gethostname())


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget_files()


def written(folder: Path, files: dict[str, str]) -> str:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return f"{folder / 'job.py'}:job"


def submitted(folder: Path) -> dict[str, str]:
    """With what a task that has loaded the job submits it."""
    reference = written(folder, FILES)
    load_job(reference)
    code = code_of(reference)
    assert code.keys() == {"hindstream", *FILES}
    forget_files()
    return code


def test_the_same_files_in_another_folder(tmp_path: Path) -> None:
    code = submitted(tmp_path / "here")
    there = written(tmp_path / "there", FILES | {"unrelated.py": "of another version"})
    assert load_same(there, None, code).name == "orders"
    assert load_same(there, "new", None).name == "new"


@pytest.mark.parametrize(
    ("there", "differing"),
    [
        ({"beside_of_it.py": FILES["beside_of_it.py"].replace("key", "total")}, "beside_of_it.py"),
        ({"job.py": f"{JOB}\n"}, "job.py"),
        (
            {"job.py": JOB.replace("beside_of_it", "third_of_it"), "third_of_it.py": FILES["beside_of_it.py"]},
            "beside_of_it.py job.py third_of_it.py",
        ),
    ],
)
def test_other_files(tmp_path: Path, there: dict[str, str], differing: str) -> None:
    code = submitted(tmp_path / "here")
    reference = written(tmp_path / "there", FILES | there)
    message = (
        r"the driver's host has another version of the code than the task that has submitted it "
        rf"\(job {re.escape(reference)}, host {HOST}, differing {re.escape(differing)}\). Next: deploy one version to "
        r"Airflow and to all hosts of the cluster, then clear the task: docs/airflow.md#one-version-of-the-code"
    )
    with pytest.raises(ConfigurationError, match=message):
        load_same(reference, None, code)


def test_another_hindstream_and_many_files(tmp_path: Path) -> None:
    code = submitted(tmp_path / "here") | {"hindstream": "0.0.1"} | {f"x{n}.py": "1e" for n in range(7)}
    with pytest.raises(ConfigurationError, match="differing Hindstream x0.py x1.py x2.py x3.py 3 more"):
        load_same(written(tmp_path / "there", FILES), None, code)


def test_a_module_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only the task has loaded of the package may be the DAG file's."""
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path / "shop_of_it", {"__init__.py": "", "job.py": JOB, "dags.py": "", "beside.py": "MORE = None"})
    (tmp_path / "beside_of_it.py").write_text(FILES["beside_of_it.py"])
    code = {"hindstream": code_of("")["hindstream"], "shop_of_it.dags": "1e"}
    with pytest.raises(ConfigurationError, match=r"differing shop_of_it shop_of_it.job\)"):
        load_same("shop_of_it.job:job", None, code)
    assert load_same("shop_of_it.job:job", None, code | code_of("shop_of_it.job:job")).name == "orders"
    for name in [name for name in sys.modules if name.startswith(("shop_of_it", "beside_of_it"))]:
        del sys.modules[name]


def test_what_the_host_does_not_have(tmp_path: Path) -> None:
    message = (
        rf"the driver's host has no such file \(file /no/such.py, host {HOST}\). Next: deploy it to this path on all "
        r"hosts of the cluster, in the version that Airflow has: docs/airflow.md#one-version-of-the-code"
    )
    with pytest.raises(ConfigurationError, match=message):
        load_same("/no/such.py:job", None, None)
    message = (
        rf"the driver's host has no such module \(module no_such_one, host {HOST}\). Next: install it on all hosts"
    )
    with pytest.raises(ConfigurationError, match=message):
        load_same("no_such_one.orders:job", None, None)
    broken = written(tmp_path / "there", FILES | {"beside_of_it.py": ""})
    with pytest.raises(
        ConfigurationError, match=rf"cannot be loaded: ImportError.*\(host {HOST}, file .*job.py, line 2"
    ):
        load_same(broken, None, None)
