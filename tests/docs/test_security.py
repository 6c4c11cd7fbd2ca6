"""SECURITY.md says what the code does."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.command import hindstream, run
from tests.conftest import ROOT
from tests.docs.named import wrong
from tests.docs.situations import bring_about

PAGE = (ROOT / "SECURITY.md").read_text()
PACKAGES = ("hindstream", "statelib")
UNSAFE_MODULES = {"_pickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = {"compile", "eval", "exec", "read_pickle", "to_pickle"}


def uses(source: str) -> set[str]:
    """What of the modules and calls that run or unpickle data a source uses."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [*(alias.name for alias in node.names), getattr(node, "module", None) or ""]
            found |= {part for name in names for part in name.split(".")} & UNSAFE_MODULES
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else None
            method = node.func.attr if isinstance(node.func, ast.Attribute) else None
            found |= {name, method if method != "compile" else None} & UNSAFE_CALLS
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from pyspark import cloudpickle", {"cloudpickle"}),
        ("import numpy, pickle as p", {"pickle"}),
        ("def f(x):\n  return eval(x)", {"eval"}),
        ("pd.read_pickle(x)", {"read_pickle"}),
        ("re.compile(x)", set()),
    ],
)
def test_a_source_that_unpickles_is_seen(source: str, found: set[str]) -> None:
    assert uses(source) == found


def test_pickles_are_where_the_page_says() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    using = {name: found for name, path in files.items() if (found := uses(path.read_text()))}
    paragraph = re.search(r"Pickles travel only.*?\n- ", PAGE, re.DOTALL)
    assert paragraph is not None
    assert using.keys() == {*re.findall(r"`(\w+/[\w/]+\.py)`", paragraph[0])}
    assert set().union(*using.values()) == {"cloudpickle", "pickle"}


def test_what_the_page_names_is_there() -> None:
    assert wrong("SECURITY.md") == []
    assert wrong("docs/security.md") == []
    assert PAGE.count("::test_") >= 15


def test_a_job_is_code_and_its_name_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bring_about("two commits")
    job = Path("jobs/rates.py")
    job.write_text(f"{job.read_text()}\nfrom pathlib import Path\nPath('ran').touch()\n")
    for arguments in (["status", "rates"], ["inspect", "rates", "rates"]):
        done = hindstream(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert not Path("ran").exists()
    assert hindstream("describe", "jobs/rates.py:job", cwd=tmp_path).returncode == 0
    assert Path("ran").exists()


_AUDITED = """
import sys
from pathlib import Path

def told(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        print(event, args)

sys.addaudithook(told)
import pandas as pd
from hindstream.spark.expectations.checks import Check, Suite
from hindstream.spark.expectations.flat_tables import PandasFrame
from hindstream.spark.validation.validator import Validator

validator = Validator(Path(sys.argv[1]))
check = Check("expect_column_values_to_not_be_null", {"column": "x"}, {})
validator.validate(Suite("t", (check,), (), part="all-rows"), PandasFrame(pd.DataFrame({"x": [1, None]})), run="1")
validator.write_docs()
print("done")
"""


def test_nobody_is_told(tmp_path: Path) -> None:
    """An audit opens no connection, whatever the environment says; the embedded Airflow is told not to."""
    done = run(sys.executable, "-c", _AUDITED, tmp_path / "site", cwd=tmp_path, GX_ANALYTICS_ENABLED="true")
    assert done.stdout == "done\n", done.stderr
    assert (
        '"AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False"'
        in (ROOT / "hindstream" / "airflow" / "embedded.py").read_text()
    )
