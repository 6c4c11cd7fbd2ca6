"""The pages, made from documents on disk."""

from __future__ import annotations

import re

import pytest

from hindstream.demo import NAME
from hindstream.report import charts
from hindstream.report.accounts import ORDER, account, shares
from hindstream.report.charts import Figure, Series
from hindstream.report.documents import RunDocuments, job_ledger, load_runs
from hindstream.report.history import History
from hindstream.report.metrics_table import measure_rows, windows
from hindstream.report.pages import job_page, run_page
from hindstream.report.rendering import render
from hindstream.report.write import write_job_report, write_run_report
from hindstream.spark.phases import report
from statelib.commits import Runs
from statelib.commits.layout import run_id
from statelib.documents.manifests import Audit, Staged
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job
from statelib.metrics.node_metrics import NodeMetrics
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.hindstream.report.documents import (
    DUPLICATES,
    FLIGHTS,
    FROM_2100,
    HELD,
    LATE,
    TOPOLOGY,
    WEATHER,
    WINDOWS,
    make_run,
)
from tests.hindstream.report.html import drawings_of_whole, text_of


def figures(storage: Storage) -> list[Figure]:
    runs = Runs(storage, NAME)
    count = sum(1 for number in range(1, 10) if runs.plan(run_id(number, 1)) is not None)
    return [Figure(f"Runs there are {count}", charts.columns(["runs"], [Series("", [count], "s1")], label="Runs"))]


JOB = Job(NAME, TOPOLOGY, figures=figures, notes=("A note, 100 % <real>.",))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Storage:
    storage = Storage(str(tmp_path_factory.mktemp("warehouse")))
    for number in (1, 2, 3):
        make_run(storage, number)
    make_run(storage, 4, passes=False)
    write_job_report(storage, JOB)
    return storage


def page(warehouse: Storage, name: str) -> str:
    return warehouse.get(f"jobs/{NAME}/reports/{name}.html").decode()


@pytest.mark.parametrize("name", ["index", "00000001-1", "00000004-1"])
def test_a_page_is_whole_and_needs_nothing_else(warehouse, name) -> None:
    assert len(drawings_of_whole(page(warehouse, name))) >= 2


def test_links_between_pages_lead_somewhere(warehouse) -> None:
    for name in ("index", "00000002-1"):
        links = [link for link in re.findall(r'href="([^"]+)"', page(warehouse, name)) if "data_docs" not in link]
        assert links
        assert all(warehouse.exists(f"jobs/{NAME}/reports/{link}") for link in links)


def test_the_data_docs_are_linked_relatively(warehouse) -> None:
    assert 'href="../data_docs/validations/00000002-1.html"' in page(warehouse, "00000002-1")


def test_a_run_says_where_its_records_went(warehouse) -> None:
    text = text_of(page(warehouse, "00000002-1"))
    for expected in (
        f"{FLIGHTS + WEATHER:,} records in",
        f"{WINDOWS:,} records out",
        f"{DUPLICATES} duplicate",
        f"{LATE} late",
        f"{HELD} held",
        "committed",
        "all 4 checks hold",
    ):
        assert expected in text


def test_a_run_shows_its_metrics_under_kafkas_names(warehouse) -> None:
    text = text_of(page(warehouse, "00000002-1"))
    for expected in (
        "record-lateness-avg", "record-lateness-max",
        f"late-record-drop-total windows that a record came too late for (KIP-328) {LATE}",
        "dropped-records-total late",
        f"suppression-emit-total results that a suppression has let go (KIP-328) {WINDOWS:,}",
        "suppression-buffer-size-current bytes of the results that wait (KIP-328) 2.0 KiB",
        f"{HELD + 1} open windows",
        f"{HELD} held results",
    ):  # fmt: skip
        assert expected in text
    assert "sealed" not in text


def test_metrics_are_shown_for_each_task(warehouse) -> None:
    run = load_runs(warehouse, NAME)[0]
    task = run.staged.tasks[0]
    other = task.model_copy(update={"task_id": "0_1"})
    two = RunDocuments(run.plan, run.staged.model_copy(update={"tasks": (task, other)}), run.audit, run.commit)
    rows = {(row.node, row.measure.name): row for row in measure_rows(TOPOLOGY, two)}
    late = rows["delays-so-far", "late-record-drop-total"]
    assert (late.value, late.tasks) == (str(2 * LATE), [("0_0", str(LATE)), ("0_1", str(LATE))])
    assert (
        rows["delays-so-far", "record-lateness-max"].value == rows["delays-so-far", "record-lateness-max"].tasks[0][1]
    )


def test_a_sealed_run_says_so(warehouse) -> None:
    run = load_runs(warehouse, NAME)[0]
    metrics = NodeMetrics(held_before=7, accounts={"emitted": 7}, counters={"sealed-results": 7})
    task = run.staged.tasks[0].model_copy(update={"metrics": {"final-delays": metrics}})
    sealed = RunDocuments(
        run.plan.model_copy(update={"end_of_input": "seal"}), run.staged.model_copy(update={"tasks": (task,)}),
        run.audit, run.commit,
    )  # fmt: skip
    assert windows(sealed.nodes) == {"sealed results": 7}
    history = History()
    history.add(sealed)
    for template, values in (("run.html.j2", run_page(JOB, sealed)), ("job.html.j2", job_page(JOB, history, ()))):
        text = text_of(render(template, values))
        assert "The job is sealed" in text
        assert "7 sealed results" in text


def test_a_run_says_which_record_holds_it_back(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    run = make_run(storage, 1, future_records=(FROM_2100,))
    write_run_report(storage, JOB, run)
    assert "flights, partition 0, offset 117 is stamped 2100-01-01" in text_of(page(storage, run))


def test_a_quarantined_run_shows_the_rows_that_failed(warehouse) -> None:
    html = page(warehouse, "00000004-1")
    assert "quarantined" in html
    assert "1048.36" in html
    assert html.index(">FAILED<") < html.index(">passed<")


def test_the_job_adds_up_its_committed_runs_and_lists_all(warehouse) -> None:
    text = text_of(page(warehouse, "index"))
    assert f"{3 * (FLIGHTS + WEATHER):,} records in" in text
    assert f"{3 * DUPLICATES:,} duplicate" in text
    assert "quarantined" in text
    assert "A note, 100 % &lt;real&gt;." in text


def test_the_ledger_of_a_job_balances(warehouse) -> None:
    committed = [run for run in load_runs(warehouse, NAME) if run.commit]
    ledger = job_ledger(committed)
    assert ledger["final-delays"].held_before == 0
    assert ledger["final-delays"].held_after == HELD
    assert {name: metrics.unaccounted for name, metrics in ledger.items() if metrics.unaccounted} == {}


def test_families_of_a_store_are_one_store(warehouse) -> None:
    assert set(load_runs(warehouse, NAME)[0].stores) == {
        "delays",
        "final-delays-store",
        "flights-once-STORE",
        "weather-by-origin",
    }


def test_unaccounted_records_stand_out(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    run = make_run(storage, 1)
    path = f"jobs/{NAME}/runs/{run}/staged.json"
    staged = Staged.decode(storage.get(path), file=path)
    staged.tasks[0].metrics["flights-once"].accounts["duplicate"] -= 7
    storage.put(path, staged.encode())
    write_run_report(storage, JOB, run)
    assert re.search(r'class="number bad">\s*7\s*<', page(storage, run))


def test_what_data_says_is_text_not_markup(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    run = make_run(storage, 1, passes=False)
    path = f"jobs/{NAME}/runs/{run}/audit.json"
    audit = Audit.decode(storage.get(path), file=path)
    check = audit.checks[0].model_copy(update={"error": "<script>alert(1)</script>", "success": False})
    storage.put(path, audit.model_copy(update={"checks": (check,)}).encode())
    write_run_report(storage, JOB, run)
    assert "<script>" not in page(storage, run)
    assert "&lt;script&gt;alert" in page(storage, run)


def test_a_run_that_is_only_planned_has_a_page(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    run = make_run(storage, 1, passes=False)
    storage.delete([f"jobs/{NAME}/runs/{run}/{name}.json" for name in ("staged", "audit")])
    write_job_report(storage, JOB)
    assert "to be replayed" in page(storage, run)
    assert "No run has been committed yet" in page(storage, "index")


def test_a_jobs_own_figures_are_on_its_page_whoever_writes_it(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    make_run(storage, 1)
    settings = load_settings({"warehouse": str(tmp_path)}, environ={})
    report.run(JOB, settings)
    text = text_of(page(storage, "index"))
    assert " Results " in text
    assert "Runs there are 1" in text
    make_run(storage, 2)
    report.run(JOB, settings)
    assert "Runs there are 2" in text_of(page(storage, "index"))
    report.run(Job(NAME, TOPOLOGY), settings)
    assert "<h2>Results</h2>" not in page(storage, "index")


def test_a_run_that_is_not_there_is_an_error(tmp_path) -> None:
    for name in ("00000009-1", "../../secret"):
        with pytest.raises(ConfigurationError, match="no such run"):
            write_run_report(Storage(str(tmp_path)), JOB, name)


def test_every_documented_account_has_a_meaning_and_a_place() -> None:
    documented = re.search(r"Accounts in use: (.*?)\.\n", NodeMetrics.__doc__ or "", re.DOTALL)
    assert documented is not None
    names = re.findall(r"``([a-z-]+)``", documented[1])
    assert len(names) > 10
    assert [name for name in names if not account(name).meaning] == []
    assert set(names) <= set(ORDER)


def test_an_unknown_account_is_shown_last_under_its_name() -> None:
    metrics = NodeMetrics(10, 8, held_after=1, accounts={"odd": 1, "forwarded": 8})
    assert [(kind.label, count) for kind, count in shares(metrics)] == [("forwarded", 8), ("held", 1), ("odd", 1)]
