"""CONTRIBUTING.md and what it promises: that a test fails until a setting or a kind of error is documented."""

from __future__ import annotations

import re

import pytest

from statelib.errors import kinds
from statelib.settings.settings import Settings
from tests.campaigns.__main__ import CAMPAIGNS
from tests.conftest import ROOT
from tests.docs.named import wrong, wrong_in

PAGE = "CONTRIBUTING.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def test_what_the_page_names_is_there() -> None:
    assert wrong(PAGE) == []


@pytest.mark.parametrize(
    ("right", "mistaken"),
    [
        ("`statelib/task/run.py`", "`statelib/task/runs.py`"),
        ("`statelib/task/`", "`statelib/tasks/`"),
        ("`tests/fast.py`", "`tests/faster.py`"),
        (
            "`tests/docs/test_contributing.py::test_what_the_page_names_is_there`",
            "`tests/docs/test_contributing.py::test_gone`",
        ),
        ("`HINDSTREAM_WAREHOUSE`", "`HINDSTREAM_WAREHOUSES`"),
        ("`HINDSTREAM_TEST_WORKERS=0`", "`HINDSTREAM_TESTS_WORKERS=0`"),
        ("`./dev lint`", "`./dev lints`"),
        ("`./dev test tests/docs`", "`./dev test tests/doc`"),
        ("`./dev campaign faults --quick`", "`./dev campaign fault --quick`"),
        ("`./dev run hindstream status`", "`./dev run hindstream state-of-things`"),
        ("`hindstream run JOB`", "`hindstream runs JOB`"),
        ("`python -m tests.formats FILE`", "`python -m tests.format FILE`"),
        ("`hindstream.spark.run_slice`", "`hindstream.spark.run_slices`"),
        ("[x](docs/concepts.md#order-and-time)", "[x](docs/concept.md)"),
        ("[x](docs/concepts.md#order-and-time)", "[x](docs/concepts.md#order-of-time)"),
        ("```\n./dev lint   # checks\n```", "```\n./dev lints   # checks\n```"),
        ("```\n$ hindstream status\n```", "```\n$ hindstream statuses\n```"),
    ],
)
def test_a_wrong_name_is_noticed(right: str, mistaken: str) -> None:
    assert wrong_in(f"# A page\n{right}\n") == []
    assert len(wrong_in(f"# A page\n{mistaken}\n")) == 1


def test_the_table_of_campaigns_has_all() -> None:
    assert {*re.findall(r"`\./dev campaign ([\w-]+)", TEXT)} == CAMPAIGNS.keys()


def test_the_table_of_changes_has_every_room() -> None:
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for top in ("statelib", "hindstream")
        for path in (ROOT / top).glob("*/__init__.py")
    }
    table = TEXT.split("## Where a change goes\n")[1].split("\n## ")[0]
    shown = {"/".join(path.split("/")[:2]) for path in re.findall(r"`((?:statelib|hindstream)/[\w/]+)`", table)}
    assert rooms - shown == set()


def test_every_setting_is_on_some_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    spelt = {
        name: rf"\b({name}|HINDSTREAM_{name.upper()})\b|--{name.replace('_', '-')}\b" for name in Settings.model_fields
    }
    assert [name for name, pattern in spelt.items() if not re.search(pattern, pages)] == []


def test_the_table_of_errors_has_every_kind() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \| \w", page, re.MULTILINE)}
    found = {
        kind.exit_code
        for kind in vars(kinds).values()
        if isinstance(kind, type) and issubclass(kind, kinds.HindstreamError)
    }
    assert codes == found
