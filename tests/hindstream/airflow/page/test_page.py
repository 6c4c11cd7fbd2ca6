"""The plug-in in a real Airflow: who is shown which pages of the warehouse, by HTTP and in a real browser."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from hindstream.airflow.links import job_and_run
from tests import command
from tests.browser import BROWSER, Page, browser
from tests.conftest import ROOT
from tests.hindstream.airflow.metadata import with_metadata
from tests.hindstream.airflow.page import HIDDEN
from tests.hindstream.airflow.page.api_server import ApiServer, api_server
from tests.hindstream.spark.orders import JOB_FILE
from tests.storage.s3 import S3Server
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

IFRAME = "document.querySelector('iframe')?.contentDocument?"


@dataclass
class Shown:
    """An API server over a home with a history.

    Attributes:
        server: It.
        folder: Holds the home, and the warehouse of the DAG ``lone``.
        runs: The runs of each DAG, the oldest first.
    """

    server: ApiServer
    folder: Path
    runs: dict[str, list[str]]

    def xcom(self, dag_id: str, task_id: str, key: str) -> list[str]:
        """What a task of the runs of a DAG has left, the oldest first."""
        with closing(sqlite3.connect(self.folder / "airflow" / "airflow.db")) as database:
            asked = "select value from xcom where dag_id = ? and task_id = ? and key = ? order by timestamp"
            return [json.loads(value) for (value,) in database.execute(asked, [dag_id, task_id, key])]


@pytest.fixture(scope="module")
def shown(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("page")
    key_id, secret = s3.credentials["AWS_ACCESS_KEY_ID"], s3.credentials["AWS_SECRET_ACCESS_KEY"]
    extra = {"endpoint_url": s3.endpoint, "region_name": "us-east-1"}
    lake = {"conn_type": "hindstream", "host": "s3://warehouse/page", "login": key_id, "password": secret}
    environ = {"AIRFLOW_CONN_LAKE": json.dumps(lake | {"extra": extra}), "AWS_SECRET_ACCESS_KEY": "wrong"}
    scenario = (sys.executable, "-m", "tests.hindstream.airflow.page.scenario", str(folder))
    done = command.run(*scenario, cwd=ROOT, **environ)
    assert done.returncode == 0, done.stderr
    home = folder / "airflow"
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        found = database.execute("select dag_id, run_id from dag_run order by id").fetchall()
    runs = {dag_id: [run_id for of, run_id in found if of == dag_id] for dag_id, _ in found}
    with api_server(home, **environ, **with_metadata(tmp_path_factory.mktemp("metadata"))) as server:
        yield Shown(server, folder, runs)


def test_a_dag_leads_to_the_report_of_its_job(shown: Shown) -> None:
    """Its warehouse is behind a connection, and the credentials in the environment are wrong."""
    begin = "/hindstream/dags/orders"
    led = shown.server.get(begin)
    assert led.status == 302
    page = shown.server.get(urljoin(begin, led.headers["location"]))
    assert page.status == 200, page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>orders</title>" in page.text
    assert "quarantined" in page.text  # the run of the second day
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert "script" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "private, no-store" in page.headers["cache-control"]


def test_a_run_of_a_dag_leads_to_the_report_of_its_run(shown: Shown) -> None:
    """That of a task that failed, too."""
    for run_id, status in zip(shown.runs["orders"], ("committed", "quarantined"), strict=True):
        begin = f"/hindstream/dags/orders/runs/{run_id.replace('+', '%2B')}"
        led = shown.server.get(begin)
        page = shown.server.get(urljoin(begin, led.headers["location"]))
        assert f'<span class="status {status}">' in page.text


def test_tasks_link_to_their_pages(shown: Shown) -> None:
    """Addresses without a beginning: Airflow may be below a prefix."""
    report, of_failed = shown.xcom("orders", "run", "hindstream_run_report")
    assert of_failed.endswith("#jobs/orders/reports/00000002-1.html")
    run_id = shown.runs["orders"][0].replace(":", "%3A").replace("+", "%2B")
    assert report == f"dags/orders/runs/{run_id}/plugin/hindstream_run#jobs/orders/reports/00000001-1.html"
    docs = shown.xcom("orders", "run", "hindstream_data_docs")[0]
    page = shown.server.get(f"/{docs}")
    assert page.status == 200
    assert "Data Docs" in page.text or "orders" in page.text
    inner = re.findall(r'href="(validations/[^"]+\.html)"', page.text)[0]
    assert shown.server.get(urljoin(f"/{docs}", inner)).status == 200


def test_a_template_says_where_the_warehouse_is(shown: Shown) -> None:
    """Of a lone, mapped operator. When the folder is gone, the page says so, and what to do."""
    begin = "/hindstream/dags/lone"
    place = urljoin(begin, shown.server.get(begin).headers["location"])
    assert "/tasks/run/0/jobs/orders/" in place
    assert shown.server.get(place).status == 200
    report = shown.folder / "warehouse" / "jobs" / "orders" / "reports" / "00000001-1.html"
    report.unlink()
    missing = shown.server.get(place.replace("index", "00000001-1"))
    assert missing.status == 404
    assert "Run 00000001-1 of orders is committed. No report has been written yet." in missing.text
    assert f"hindstream report {JOB_FILE}:job" in missing.text
    (shown.folder / "warehouse").rename(shown.folder / "elsewhere")
    gone = shown.server.get(place)
    assert gone.status == 503
    assert "The warehouse is a folder that this machine does not have" in gone.text
    assert "set web_url" in gone.text


@pytest.mark.parametrize(
    ("dag_id", "status", "said"),
    [
        ("two-jobs", 200, "airflow dags trigger two-jobs"),
        ("other", 200, "No task of other is one of Hindstream&#39;s"),
        ("unknown", 404, "Airflow has no such DAG"),
        (HIDDEN, 403, "You may not see the runs of this DAG"),
    ],
)
def test_there_is_nothing_to_show(shown: Shown, dag_id: str, status: int, said: str) -> None:
    page = shown.server.get(f"/hindstream/dags/{dag_id}")
    assert (page.status, said in page.text) == (status, True), page.text
    if dag_id == "two-jobs":
        assert "jobs/orders.py:job" in page.text
        assert "jobs/returns.py:job" in page.text


def test_nobody_is_shown_anything_without_a_login(shown: Shown) -> None:
    for path in ("dags/orders", shown.xcom("orders", "run", "hindstream_data_docs")[0].removeprefix("hindstream/")):
        page = shown.server.get(f"/hindstream/{path}", None)
        assert page.status == 401
        assert "Log in to Airflow" in page.text


def test_pages_of_a_dag_that_one_may_not_read_are_not_shown(shown: Shown) -> None:
    docs = shown.xcom("orders", "run", "hindstream_data_docs")[0]
    assert shown.server.get(f"/{docs.replace('dags/orders', f'dags/{HIDDEN}')}", "admin").status == 403


def test_nothing_else_of_the_warehouse_is_shown(shown: Shown, s3: S3Server) -> None:
    docs = shown.xcom("orders", "run", "hindstream_data_docs")[0]
    below, _, _ = docs.partition("/jobs/orders/")
    for path in (
        "jobs/orders/commits/00000000000000000001.json",
        "jobs/orders/reports/history.json",
        "jobs/orders/reports/../commits/head.json",
        "jobs/orders/reports/%2e%2e/commits/head.json",
        "jobs/orders/great_expectations/..%2f..%2fother/reports/index.html",
        "jobs/orders/great_expectations/%2e%2e/%2e%2e/%2e%2e/topics/page.html",
        "jobs/other/reports/index.html",
        "jobs/orders/reports/%00index.html",
        "topics/orders/_delta_log/00000000000000000000.json",
    ):
        answer = shown.server.get(f"/{below}/{path}")
        assert answer.status == 404, path
        assert not any(secret in answer.text for secret in s3.credentials.values())
    assert shown.server.get(f"/{below.replace('/-1', '/x')}/jobs/orders/reports/index.html").status == 404
    assert shown.server.get(f"/{docs}", method="POST", body=b"{}").status == 405


def test_no_secret_is_told(shown: Shown, s3: S3Server) -> None:
    said = shown.server.log.read_text()
    assert "GET" in said
    assert not any(secret in said for secret in s3.credentials.values())


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://lake.example.com/w/jobs/flights/reports/00000001-1.html", ("flights", "00000001-1")),
        ("dags/a/runs/b/plugin/hindstream_run#jobs/flights/reports/00000002-1.html", ("flights", "00000002-1")),
        ("jobs/../reports/x.html", None),
        ("jobs/a\nb/reports/x.html", None),
        ("", None),
    ],
)
def test_a_link_names_the_run(address: str, expected: tuple[str, str] | None) -> None:
    assert job_and_run(address) == expected


@pytest.fixture(scope="module")
def page(shown: Shown) -> Iterator[Page]:
    if BROWSER is None:
        pytest.skip("there is no chromium")
    with browser() as page:
        page.resize(1280, 900)
        page.log_in(shown.server.address, shown.server.tokens["viewer"])
        yield page


def test_a_browser_shows_the_report_beside_the_dag(shown: Shown, page: Page) -> None:
    page.open(f"{shown.server.address}/dags/orders")
    page.wait("[...document.querySelectorAll('a')].find(a => a.innerText == 'Hindstream')?.href")
    page.js("[...document.querySelectorAll('a')].find(a => a.innerText == 'Hindstream').click()")
    assert page.wait(f"{IFRAME}.querySelector('h1')?.innerText") == "orders"
    page.js(f"[...{IFRAME}.querySelectorAll('td a')].find(a => a.innerText == '00000001-1').click()")
    assert page.wait(f"{IFRAME}.querySelector('h1')?.innerText.startsWith('Run 00000001-1')")
    assert [said for said in page.said if "Content Security Policy" in said or "Failed to load" in said] == []
    page.js(f"[...{IFRAME}.querySelectorAll('a')].find(a => a.href.includes('great_expectations')).click()")
    assert page.wait(f"{IFRAME}.location.pathname.includes('great_expectations') && {IFRAME}.body.innerText")


def test_the_link_of_a_task_leads_to_the_report_in_the_run_of_the_dag(shown: Shown, page: Page) -> None:
    run_id = shown.runs["orders"][1]
    page.open(f"{shown.server.address}/dags/orders/runs/{run_id.replace('+', '%2B')}/tasks/run/details")
    link = "[...document.querySelectorAll('a')].find(a => a.innerText == 'Run report')"
    assert page.wait(f"{link}?.href")
    page.js(f"{link}.click()")
    heading = page.wait(f"{IFRAME}.querySelector('h1')?.innerText")
    assert heading.split() == ["Run", "00000002-1", "quarantined"]
    assert page.js("location.pathname").endswith("/plugin/hindstream_run")


def test_the_report_has_the_colours_of_airflow_and_fits_a_narrow_window(shown: Shown, page: Page) -> None:
    page.js("localStorage.setItem('theme', 'dark')")
    page.resize(700, 900)
    page.open(f"{shown.server.address}/dags/orders/plugin/hindstream")
    assert page.wait(f"{IFRAME}.querySelector('h1')?.innerText") == "orders"
    assert page.js(f"getComputedStyle({IFRAME}.body).backgroundColor") == "rgb(19, 20, 23)"
    assert page.js(f"{IFRAME}.documentElement.scrollWidth <= {IFRAME}.documentElement.clientWidth")
