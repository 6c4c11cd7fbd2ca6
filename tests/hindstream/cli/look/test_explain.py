"""``hindstream explain`` as text and as data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.cli.look.explain import Asked, print_explanation
from statelib import ConfigurationError
from statelib.job.job import Job
from statelib.settings.settings import Settings
from tests.explanation.jobs import OUT, run, windows

if TYPE_CHECKING:
    from pathlib import Path


def _value(identifier: str, amount: int) -> dict[str, Any]:
    return {"id": identifier, "amount": amount, "other": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One window, with a duplicate and a late record."""
    folder = tmp_path_factory.mktemp("explain")
    events = [
        ("a", _value("1", 5), 80),
        ("a", _value("1", 5), 94),
        ("b", _value("2", 1), 160),
        ("a", _value("3", 7), 100),
    ]
    run(folder, windows(), {"events": events})
    return folder


@pytest.fixture
def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    settings = Settings(warehouse=str(folder / "warehouse"), state_dir=str(folder / "local"))

    def explain(key: str | None, window: str | None = None, record: str | None = None, **how: Any) -> str:
        asked = Asked(how.pop("sink", OUT), key, window, how.pop("commit", None), record)
        how = {"limit": 20, "output": "table", **how}
        print_explanation(Job("explained", windows()), asked, settings, **how)
        return capsys.readouterr().out

    return explain


def test_as_text(printed: Any) -> None:
    text = printed("a", "1970-01-01T00:00:00.080Z")
    head, *_ = text.splitlines()
    assert head == "out/0 offset 0, by commit 1, 1970-01-01T00:00:00.080Z"
    assert "Made by 2 records:\n  events/0 offset 0  1970-01-01T00:00:00.080Z" in text
    assert "<- then the result was written" in text
    assert "Without any one they do not." in text
    assert "Dropped on the way: 2 records" in text
    assert "duplicate of events/0 offset 0; at once (" in text
    assert "late: 60 ms behind 1970-01-01T00:00:00.160Z; at KSTREAM-AGGREGATE-0000000002 (" in text
    assert "once: deduplicate_by_key_value (" in text


def test_few_records(printed: Any) -> None:
    text = printed("a", "80", limit=1)
    assert text.count("  and 1 more; --limit shows them") == 2


def test_as_data(printed: Any) -> None:
    told = json.loads(printed(None, record="0:0", output="json"))
    assert (told["job"], told["commit"], told["reproduced"], told["minimal"]) == ("explained", 1, True, True)
    assert told["result"]["value"] == {"n": 1, "most": 5}
    assert [(one["offset"], one["last"]) for one in told["contributions"]] == [(0, False), (2, True)]
    assert [(one["offset"], one["rule"], one["lateness_ms"]) for one in told["dropped"]] == [
        (1, "duplicate", None),
        (3, "late", 60),
    ]
    assert told["dropped"][0]["duplicate_of"]["offset"] == 0
    assert told["dropped"][0]["line"]["file"].endswith("jobs.py")
    assert [step["forwarded"] for step in told["steps"]] == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"key": None}, "there is no result to explain"),
        ({"key": "a", "record": "0:0"}, "a key and a record are given"),
        ({"key": None, "record": "0"}, "'0' is no record"),
        ({"key": None, "record": "0:9"}, "the sink has no such record"),
        ({"key": "c"}, "the sink has no record of this key there"),
        ({"key": "c", "window": "0"}, "no record of this key there .*commit 1"),
        ({"key": "a", "window": "81"}, "none of a window that begins then .*00:00:00.081Z"),
        ({"key": "a", "window": "1970-01-01T00:00:00.080"}, "the time has no time zone"),
        ({"key": "a", "sink": "elsewhere"}, "the job does not write this topic .* Next: one of: "),
        ({"key": "a", "sink": "explained-quarantine"}, "source records that the job set apart .*show explained-quar"),
        ({"key": "a", "commit": 2}, "there is no such commit"),
    ],
)
def test_what_cannot_be_explained(printed: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        printed(**asked)


def test_a_page_beside_the_text(printed: Any, tmp_path: Path) -> None:
    assert "Made by 2 records:" in printed("a", "80", page=tmp_path / "why.html")
    assert "2 records made it." in (tmp_path / "why.html").read_text()


def test_a_page_that_cannot_be_written_is_refused_before_the_replay(printed: Any, tmp_path: Path) -> None:
    for page in (tmp_path, tmp_path / "nowhere" / "why.html"):
        with pytest.raises(ConfigurationError, match="the page cannot be written"):
            printed("a", "80", page=page)
