"""What a real Marquez shows of runs that the command line has told it of."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.command import hindstream
from tests.hindstream.airflow.scenario import with_defect
from tests.hindstream.lineage.marquez import CHECKOUT, Marquez, marquez
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK
from tests.postgres import has_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(CHECKOUT not in os.environ, reason=f"{CHECKOUT} names no checkout of Marquez' repository"),
    pytest.mark.skipif(not has_postgres(), reason="there is no PostgreSQL"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="there is no javac"),
]


@dataclass(frozen=True)
class Shown:
    """What a Marquez shows of two slices, whose second has failed its audit.

    Attributes:
        server: It.
        topics: Where the topics are.
    """

    server: Marquez
    topics: str

    def runs(self, job: str) -> list[dict[str, Any]]:
        """The oldest first."""
        found: list[dict[str, Any]] = self.server.get(f"namespaces/default/jobs/{job}/runs")["runs"]
        return sorted(found, key=lambda run: run["createdAt"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("shown")
    settings = make_settings(folder)
    archive_orders(settings, with_defect(orders()))
    given = {"warehouse": settings.warehouse, "state_dir": settings.state_dir, "engine": "local", "openlineage": "true"}
    options = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    with marquez(tmp_path_factory.mktemp("marquez")) as server:
        for day, code in ((2, 0), (3, 65)):
            until = f"1970-01-0{day}T00:00Z"
            run = ("run", f"{JOB_FILE}:job", "--until", until, *options)
            done = hindstream(*run, cwd=folder, OPENLINEAGE_URL=server.url)
            assert done.returncode == code, done.stderr
        yield Shown(server, f"{settings.warehouse}/topics")


def test_runs_with_their_ends(shown: Shown) -> None:
    states = [(run["state"], run["facets"]["hindstream"]["runId"]) for run in shown.runs("orders")]
    assert states == [("COMPLETED", "00000001-1"), ("FAILED", "00000002-1")]
    assert "expect_column_values_to_be_between" in shown.runs("orders")[1]["facets"]["errorMessage"]["message"]


def test_the_phases_below_their_job(shown: Shown) -> None:
    jobs = shown.server.get("jobs")["jobs"]
    below = {job["name"]: job["parentJobName"] for job in jobs}
    assert below == {"orders": None, "orders.audit": "orders", "orders.maintain": "orders"}


def test_the_way_from_source_to_sink(shown: Shown) -> None:
    graph = shown.server.get("lineage", nodeId="job:default:orders", depth=1)["graph"]
    edges = [(edge["origin"], edge["destination"]) for node in graph for edge in node["outEdges"]]
    source, sink = (f"dataset:file:{shown.topics}/{topic}" for topic in ("orders", SINK))
    assert {(source, "job:default:orders"), ("job:default:orders", sink)} <= set(edges)


def test_columns_and_what_they_are_made_of(shown: Shown) -> None:
    datasets = {of["name"]: of for of in shown.server.get("namespaces/file/datasets")["datasets"]}
    fields = {field["name"]: field["type"] for field in datasets[f"{shown.topics}/{SINK}"]["fields"]}
    assert (fields["key.window_start"], fields["value.amount"]) == ("timestamp[us, tz=UTC]", "double")
    amount = f"datasetField:file:{shown.topics}/{SINK}:value.amount"
    graph = shown.server.get("column-lineage", nodeId=amount)["graph"]
    (found,) = (node["data"]["inputFields"] for node in graph if node["id"] == amount)
    assert [(field["dataset"], field["field"]) for field in found] == [(f"{shown.topics}/orders", "value.amount")]


def test_how_much_was_written_and_checked(shown: Shown) -> None:
    written = shown.runs("orders")[0]["outputDatasetVersions"][-1]["facets"]["outputStatistics"]
    assert (written["rowCount"], written["fileCount"]) == (66, 1)
    checks = [
        [check["success"] for check in run["inputDatasetVersions"][0]["facets"]["dataQualityAssertions"]["assertions"]]
        for run in shown.runs("orders.audit")
    ]
    assert [found.count(False) for found in checks] == [0, 1]
