"""Data Docs of one run after the other, with real Great Expectations, in a warehouse that is no local directory."""

from __future__ import annotations

from posixpath import join, normpath
from re import findall
from typing import TYPE_CHECKING

import pandas as pd

from spark_jobs.checks import Check, Suite
from spark_jobs.data_docs import add_pages
from spark_jobs.frames import PandasFrame
from spark_jobs.validation import Validator
from statelib.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "jobs/j/great_expectations"
SUITE = Suite("t", (Check("expect_column_values_to_not_be_null", {"column": "x"}, {}),), (), part="all-rows")


def audit(warehouse: Storage, site: Path, run: str) -> str:
    """The page of an audit, below the job's site."""
    validator = Validator(site)
    validated = validator.validate(SUITE, PandasFrame(pd.DataFrame({"x": [1, 2]})), run=run)
    assert validator.page(validated) is None
    validator.write_docs()
    page = validator.page(validated)
    assert page is not None
    add_pages(warehouse, "j", site)
    return page.relative_to(site).as_posix()


def test_former_runs_keep_their_pages_and_are_not_touched(tmp_path: Path) -> None:
    warehouse = Storage("memory://")
    first = audit(warehouse, tmp_path / "1", "00000001-1")
    before = {entry.path: entry for entry in warehouse.list(ROOT)}
    second = audit(warehouse, tmp_path / "2", "00000002-1")
    after = {entry.path: entry for entry in warehouse.list(ROOT)}
    assert after.keys() - before.keys() == {f"{ROOT}/{second}"}
    written = {path for path in before if after[path] != before[path]}
    assert written <= {f"{ROOT}/index.html", f"{ROOT}/expectations/t~all-rows.html"}
    assert {path for path in after if "/validations/" in path} == {f"{ROOT}/{first}", f"{ROOT}/{second}"}
    index = warehouse.get(f"{ROOT}/index.html").decode()
    assert second in index
    assert first not in index


def test_links_from_a_page_lead_somewhere(tmp_path: Path) -> None:
    warehouse = Storage("memory://")
    page = audit(warehouse, tmp_path, "00000001-1")
    html = warehouse.get(f"{ROOT}/{page}").decode()
    links = set(findall(r'(?:href|src)="(\.\./[^"#]+)"', html))
    linked = {link for link in links if "favicon" not in link}  # Great Expectations counts its folders wrongly there
    assert len(linked) >= 2
    assert [link for link in linked if not warehouse.exists(f"{ROOT}/{normpath(join(page, '..', link))}")] == []


def test_a_run_without_anything_validated_has_an_index(tmp_path: Path) -> None:
    Validator(tmp_path).write_docs()
    assert (tmp_path / "index.html").exists()
