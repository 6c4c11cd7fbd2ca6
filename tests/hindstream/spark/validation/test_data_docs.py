"""Data Docs of one run after the other, with real Great Expectations, in a warehouse that is no local directory."""

from __future__ import annotations

from posixpath import join, normpath
from re import escape, findall
from typing import TYPE_CHECKING

import pandas as pd

from hindstream.spark.expectations.checks import Check, Suite
from hindstream.spark.expectations.flat_tables import PandasFrame
from hindstream.spark.validation.data_docs import keep_site
from hindstream.spark.validation.validator import Validator
from statelib.storage import Storage
from tests.hindstream.compiled_templates import compiled

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

JOB = "jobs/j"
SUITE = Suite("t", (Check("expect_column_values_to_not_be_null", {"column": "x"}, {}),), (), part="all-rows")


def audit(warehouse: Storage, site: Path, run: str) -> str:
    """The page of an audit, below the job's folder."""
    validator = Validator(site)
    validated = validator.validate(SUITE, PandasFrame(pd.DataFrame({"x": [1, 2]})), run=run)
    assert validator.page(validated) is None
    validator.write_docs()
    page = validator.page(validated)
    assert page is not None
    return f"{keep_site(warehouse, 'j', run, site)}/{page.relative_to(site).as_posix()}"


def test_each_run_has_pages_of_its_own(tmp_path: Path) -> None:
    warehouse = Storage("memory://")
    first = audit(warehouse, tmp_path / "1", "00000001-1")
    before = warehouse.list()
    second = audit(warehouse, tmp_path / "2", "00000002-1")
    added = {entry.path for entry in warehouse.list()} - {entry.path for entry in before}
    assert warehouse.list()[: len(before)] == before
    site = f"{JOB}/great_expectations/00000002-1"
    assert added == {f"{JOB}/{second}", f"{site}/index.html", f"{site}/expectations/t~all-rows.html"}
    index = warehouse.get(f"{site}/index.html").decode()
    assert second.removeprefix("great_expectations/00000002-1/") in index
    assert "00000001-1" in first
    assert "00000001-1" not in index


def test_templates_are_compiled_once_for_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = compiled(monkeypatch)
    audit(Storage("memory://"), tmp_path / "1", "00000001-1")
    assert "page.j2" in names
    names.clear()
    audit(Storage("memory://"), tmp_path / "2", "00000001-1")
    assert names == []


def test_links_from_a_page_lead_somewhere(tmp_path: Path) -> None:
    warehouse = Storage("memory://")
    page = audit(warehouse, tmp_path, "00000001-1")
    html = warehouse.get(f"{JOB}/{page}").decode()
    links = {link for link in findall(r'(?:href|src)="(\.\.?/[^"#]+)"', html) if "favicon" not in link}
    assert len(links) >= 2
    assert [link for link in links if not warehouse.exists(f"{JOB}/{normpath(join(page, '..', link))}")] == []


def test_the_pages_need_no_network_and_no_script(tmp_path: Path) -> None:
    warehouse, site = Storage("memory://"), tmp_path
    checks = (*SUITE.checks, Check("expect_column_values_to_be_in_set", {"column": "x", "value_set": ["<b>", 7]}, {}))
    validator = Validator(site)
    suite = Suite("t", checks, (), part="all-rows")
    validator.validate(suite, PandasFrame(pd.DataFrame({"x": [1, 2, 7]})), run="00000001-1")
    validator.write_docs()
    folder = f"{JOB}/{keep_site(warehouse, 'j', '00000001-1', site)}"
    pages = {entry.path: warehouse.get(entry.path).decode() for entry in warehouse.list(folder)}
    assert len(pages) == 3
    for html in pages.values():
        assert findall(r"(?i)(?:https?:|//[a-z])[^\s\"']*|<script|<link|@import|url\(", html) == []
        assert html.count("<style>") == 1
        assert html.count("<table") == html.count("</table>")
    (page,) = (path for path in pages if "/validations/" in path)
    index = pages[f"{folder}/index.html"]
    assert f'<a href="{page.removeprefix(folder)[1:]}">open</a>' in index
    assert "<td>00000001-1</td>" in index
    assert '<a href="expectations/t~all-rows.html">open</a>' in index
    assert "2 unexpected values found" in pages[page]
    assert "&lt;b&gt;" in pages[page]


MARKUP = '"><svg onload=alert(1)><a href="javascript:alert(2)">$x</a>'
"""What a record, or the name of a field, may hold."""


def test_what_records_hold_is_text(tmp_path: Path) -> None:
    field = f"n{MARKUP}"
    checks = (
        Check("expect_column_values_to_be_in_set", {"column": "x", "value_set": ["a", f"{MARKUP}set"]}, {}),
        Check("expect_column_values_to_match_regex", {"column": "x", "regex": f"{escape(MARKUP)}|^a"}, {}),
        Check("expect_column_values_to_be_between", {"column": field, "min_value": 100}, {}),
        Check("expect_column_distinct_values_to_be_in_set", {"column": "x", "value_set": ["a"]}, {}),
        Check("expect_column_values_to_be_unique", {"column": "x"}, {}),
    )
    frame = PandasFrame(pd.DataFrame({"x": ["a", MARKUP, MARKUP, f"{MARKUP}2"], field: [1, 2, 3, 4]}))
    validator = Validator(tmp_path)
    suite = Suite("t", checks, (), part="all-rows", note=f"A note. {MARKUP}")
    validator.validate(suite, frame, run="00000001-1")
    validator.write_docs()
    warehouse = Storage("memory://")
    folder = f"{JOB}/{keep_site(warehouse, 'j', '00000001-1', tmp_path)}"
    pages = {entry.path: warehouse.get(entry.path).decode() for entry in warehouse.list(folder)}
    assert [path for path, html in pages.items() if findall(r"<svg|<[^>]*javascript:", html)] == []
    (results,) = (html for path, html in pages.items() if "/validations/" in path)
    assert results.count("&lt;svg onload=alert(1)&gt;") >= 8
    assert [path for path, html in pages.items() if "script-src" in html or "default-src 'none'" not in html] == []


def test_a_run_without_anything_validated_has_an_index(tmp_path: Path) -> None:
    Validator(tmp_path).write_docs()
    assert (tmp_path / "index.html").exists()
