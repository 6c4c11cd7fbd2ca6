"""The DAG files to copy: each loads in Airflow, is a few lines, and needs nothing but what a user installs."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DAGS = Path(__file__).parents[2] / "dags"
FILES = sorted(DAGS.glob("*.py"))
PARSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(dag_folder=sys.argv[1])
dags = {dag_id: dag.task_ids for dag_id, dag in bag.dags.items()}
print(json.dumps({"errors": list(bag.import_errors.values()), "dags": dags}))
"""


@pytest.mark.airflow
def test_airflow_loads_each_file_where_there_is_another_package_dags(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "__init__.py").write_text("raise ImportError('this is the package of somebody else')")
    environ = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(tmp_path),
    }
    command = [sys.executable, "-c", PARSE, str(DAGS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["errors"] == []
    assert sorted(found["dags"]) == [
        "backfill-flight-delays",
        "flight-delays",
        "maintain-flight-delays",
        "migrate-flight-delays",
        "switch-delays",
    ]
    assert found["dags"]["maintain-flight-delays"] == ["maintain"]


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_a_file_only_imports_from_hindstream_airflow(file: Path) -> None:
    imports = {node.module for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)}
    assert imports - {"__future__", "datetime"} == {"hindstream.airflow"}
    assert len(file.read_text().splitlines()) <= 25


def test_the_packages_are_no_packages() -> None:
    assert not list(DAGS.rglob("__init__.py"))
    assert not list((DAGS.parent / "spark_jobs").rglob("__init__.py"))
