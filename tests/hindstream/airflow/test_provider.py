"""Hindstream as Airflow sees it among its providers: entry point, form of a connection, its test, links, parse time."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hindstream.airflow.provider import get_provider_info
from hindstream.airflow.replay import PHASES
from tests import command
from tests.conftest import ROOT
from tests.hindstream.airflow.metadata import with_metadata
from tests.storage.s3 import S3Server
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

ASKED = """
import json, os, sys
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager

manager = ProvidersManager()
hook = manager.hooks["hindstream"]
fields = {name: info.field for name, info in manager.connection_form_widgets.items() if "hindstream" in name}
said = {}
for name, given in json.loads(sys.argv[1]).items():
    os.environ["AIRFLOW_CONN_TRIED"] = json.dumps(given)
    said[name] = Connection(conn_id="tried", conn_type="hindstream").test_connection()
print(json.dumps({
    "version": manager.providers["hindstream"].version,
    "hook": [hook.connection_type, hook.hook_name, hook.connection_id_attribute_name],
    "form": sorted(name.removeprefix("extra__hindstream__") for name in fields),
    "behaviour": manager.field_behaviours["hindstream"],
    "links": sorted(name for name in manager.extra_links_class_names if "hindstream" in name),
    "said": said,
}))
"""

LOADED = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
print(json.dumps({dag.dag_id: dag.task_ids for dag in bag.dags.values()}))
"""

PARSED = """
import json, sys, time
began = time.process_time()
import airflow.dag_processing.dagbag
from airflow.sdk import (
    DAG, BaseHook, BaseOperator, BaseOperatorLink, CronDataIntervalTimetable, DeltaDataIntervalTimetable, Param,
    SkipMixin, TaskGroup, chain, get_current_context,
)
airflow_took = time.process_time() - began
before, began = set(sys.modules), time.process_time()
from hindstream.airflow import replay_dag
replay_dag("jobs/flights.py:job", schedule="@daily", warehouse="s3://lake/warehouse")
took = time.process_time() - began
modules = sorted(set(sys.modules) - before)
import airflow.sdk.plugins_manager
before = set(sys.modules)
import hindstream.airflow.plugin
of_plugin = sorted(set(sys.modules) - before)
print(json.dumps({"took_s": took, "airflow_took_s": airflow_took, "modules": modules, "of_plugin": of_plugin}))
"""

PARSED_WITHIN_S = 0.2
"""Of processor time, beside what Airflow itself takes."""

SHARE_OF_AIRFLOW = 1 / 8
"""Where even that is more, since the machine is slow: of what the import of Airflow takes. It is a twelfth."""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With the metadata that the package has when it is built, before those of whatever is installed."""
    found = with_metadata(tmp_path_factory.mktemp("metadata"))
    return found | {"AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}


@pytest.fixture(scope="module")
def asked(environ: dict[str, str], s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow's manager of providers says, and what tests of connections do."""
    extra = {"endpoint_url": s3.endpoint, "region_name": "us-east-1"}
    in_s3 = {
        "conn_type": "hindstream",
        "host": "s3://warehouse/tried",
        "login": s3.credentials["AWS_ACCESS_KEY_ID"],
        "password": s3.credentials["AWS_SECRET_ACCESS_KEY"],
        "extra": extra,
    }
    tried = {
        "local": {"conn_type": "hindstream", "host": str(tmp_path_factory.mktemp("warehouse"))},
        "absent": {"conn_type": "hindstream", "host": "/nowhere/at/all"},
        "none": {"conn_type": "hindstream"},
        "s3": in_s3,
        "key": in_s3 | {"password": "wrong-key"},
        "kafka": in_s3 | {"extra": extra | {"kafka_bootstrap_servers": "127.0.0.1:1"}},
    }
    done = command.run(sys.executable, "-c", ASKED, json.dumps(tried), cwd=ROOT, **environ)
    assert done.returncode == 0, done.stderr
    assert "wrong-key" not in done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_provider_is_as_airflows_schema_wants_it() -> None:
    airflow = importlib.util.find_spec("airflow")
    assert airflow is not None
    assert airflow.origin is not None
    schema = json.loads(Path(airflow.origin).with_name("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_airflow_lists_the_provider(environ: dict[str, str]) -> None:
    airflow = str(Path(sys.executable).with_name("airflow"))
    done = command.run(airflow, "providers", "list", "--output", "json", cwd=ROOT, **environ)
    assert done.returncode == 0, done.stderr
    listed = {one["package_name"]: one for one in json.loads(done.stdout[done.stdout.index("[{") :])}
    assert "Kafka-Streams-grade" in listed["hindstream"]["description"]


def test_a_connection_has_a_form(asked: dict[str, Any]) -> None:
    assert asked["hook"] == ["hindstream", "Hindstream", "hindstream_conn_id"]
    (kind,) = get_provider_info()["connection-types"]
    assert asked["form"] == sorted(kind["conn-fields"])
    assert asked["behaviour"]["relabeling"]["host"] == "Warehouse"
    assert len(asked["links"]) == 2


def test_the_test_of_a_connection_reads_what_it_names(asked: dict[str, Any]) -> None:
    said = {name: tuple(told) for name, told in asked["said"].items()}
    assert said["local"][0] is True
    assert said["local"][1].endswith(" can be read")
    assert said["s3"] == (True, "s3://warehouse/tried can be read")
    beginnings = {
        "absent": "there is no such warehouse",
        "none": "the connection names no warehouse",
        "key": "",
        "kafka": "",
    }
    for name, beginning in beginnings.items():
        assert said[name][0] is False, said[name]
        assert said[name][1].startswith(beginning)
    assert "127.0.0.1:1" in said["kafka"][1]


def parsed(home: Path) -> dict[str, Any]:
    """What it took to parse a DAG file, in a new process."""
    done = command.run(sys.executable, "-c", PARSED, cwd=ROOT, AIRFLOW_HOME=str(home))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_fast(parsed: dict[str, Any]) -> bool:
    within_s: float = max(PARSED_WITHIN_S, parsed["airflow_took_s"] * SHARE_OF_AIRFLOW)
    return parsed["took_s"] < within_s


def test_a_dag_file_imports_little_beside_airflow(tmp_path: Path) -> None:
    """What takes time are imports. A machine that is busy takes longer, but not each time."""
    found = parsed(tmp_path)
    assert is_fast(found) or any(is_fast(parsed(tmp_path)) for _ in range(4))
    others = {name.partition(".")[0] for name in found["modules"]} - {"hindstream", "statelib"}
    assert others <= {"airflow", "argparse", "difflib", "dotenv", "pydantic", "pydantic_settings", "tomllib"}
    assert len(found["modules"]) < 90
    assert found["of_plugin"] == ["hindstream.airflow.plugin"]  # each task loads it, too


def test_what_the_page_shows_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "airflow.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    folder = tmp_path / "dags"
    folder.mkdir()
    for number, block in enumerate(blocks):
        (folder / f"block_{number}.py").write_text(block)
    done = command.run(sys.executable, "-c", LOADED, str(folder), cwd=ROOT, AIRFLOW_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    dags = json.loads(done.stdout.splitlines()[-1])
    assert sorted(dags["replay_flights"]) == sorted(PHASES)
    assert sorted(dags["flights"]) == sorted(["notify", *(f"replay.{phase}" for phase in PHASES)])
    assert sorted(dags["flights_in_two_tasks"]) == ["maintain", "run"]
    assert sorted(dags["replay_orders"]) == sorted(["archive", *PHASES])
    assert sorted(dags["replay_carts"]) == sorted(PHASES)


def test_the_connection_of_the_page_is_one() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "airflow.md").read_text(), re.DOTALL)
    extra = json.loads(shown)["extra"]
    (kind,) = get_provider_info()["connection-types"]
    assert extra.keys() <= kind["conn-fields"].keys()
