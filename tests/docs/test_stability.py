"""docs/stability.md and docs/releasing.md say what the code does."""

from __future__ import annotations

import re
import tomllib
import warnings
from itertools import pairwise

import pytest

import statelib
from tests.conftest import ROOT
from tests.docs.named import wrong
from tests.formats.test_formats import FORMATS

STABILITY = (ROOT / "docs" / "stability.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("page", ["docs/stability.md", "docs/releasing.md"])
def test_what_the_page_names_is_there(page: str) -> None:
    assert wrong(page) == []


def test_the_table_of_formats_is_the_list_of_formats() -> None:
    rows = dict(re.findall(r"^\| [^|]+ \| `([\w.]+)` \| ([^|,]+?)(?:,[^|]*)? \|$", STABILITY, re.MULTILINE))
    expected = {}
    for name, shown in FORMATS.items():
        first, last = str(shown.versions[0]), str(shown.versions[-1])
        between = " to " if len(shown.versions) > 2 else " and "
        expected[name] = first if first == last else f"{first}{between}{last}"
    assert rows == expected


def test_no_public_name_is_deprecated() -> None:
    assert "Deprecated today: the argument `storage_conn_id`" in STABILITY  # tests/hindstream/airflow/test_arguments.py
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in statelib.__all__:
            getattr(statelib, name)


def test_the_version_has_its_part_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == PROJECT["version"]
    assert all(day for _, day in headings[1:])
    assert all(newer > older for newer, older in pairwise(day for _, day in headings[1:]))
