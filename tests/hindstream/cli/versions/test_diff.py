"""``hindstream diff`` as a user meets it, on a job and forks of it that really ran."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer

from hindstream.cli.versions.diff import Asked, interval_of, print_difference, rules_of
from statelib import StreamsBuilder
from statelib.commits.versions.fork import fork
from statelib.commits.versions.sink_history import sink_history
from statelib.comparison.sinks import JobCommit
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import Settings
from tests.command import hindstream
from tests.task.pipeline import Pipeline

VALUE = pa.struct([("id", pa.string()), ("amount", pa.int64())])
EVENTS = [
    ("ann" if n % 20 == 7 else "bob", {"id": f"i{n % 7 + n // 12 * 7}", "amount": n}, n * 1000) for n in range(60)
]


def topology(suffix="", seconds=60, *, amount=True):
    """Each id once in an interval."""
    builder = StreamsBuilder("once")
    once = builder.stream("events").deduplicate_by_key_value(pc.field("value", "id"), timedelta(seconds=seconds))
    if not amount:
        once = once.map_values({"id": pc.field("value", "id")})
    once.to(f"unique{suffix}")
    return builder.build()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    first = Pipeline(folder, topology(), "once")
    first.archive("events", EVENTS, (pa.string(), VALUE))
    first.run(30_000)
    first.run()
    for name, changes in (("same", {}), ("shorter", {"seconds": 5}), ("fewer", {"amount": False})):
        fork(first.warehouse, "once", name, 1, now_ms=0)
        made = Pipeline(folder, topology(f".{name}", **changes), name, warehouse=str(folder / "warehouse"))
        made.run(reset_stores=["KSTREAM-DEDUPLICATE-0000000001-STORE"] if name == "shorter" else [])
    return folder


@pytest.fixture
def told(folder, capsys):
    def run(a, b, code=0, output="json", tolerances=(), ignored=(), since=None, until=None, **options):
        settings = Settings(warehouse=str(folder / "warehouse"), state_dir=str(folder / "state"))
        rules, within = rules_of(tolerances, ignored), interval_of(since, until)
        asked = Asked(**{"sinks": (), "way": None, "rules": rules, "within": within, "limit": 1000, **options})
        ended = 0
        try:
            print_difference(JobCommit(*a), JobCommit(*b), asked, settings, output=output)
        except typer.Exit as end:
            ended = end.exit_code
        assert ended == code
        text = capsys.readouterr().out
        return json.loads(text) if output == "json" else text

    return run


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 2)])
def test_a_fork_of_the_same_topology_is_equal(told, a, b) -> None:
    found = told(("once", a), ("same", b))
    assert found["is_empty"]
    assert found["ledgers"]["since"] == {"job": "once", "commit": 1}
    assert [sink["difference"]["changed"] for sink in found["sinks"]] == [0] * len(found["sinks"])


def _history(folder, *topics):
    """As multisets the records that a job shows: those of commit 1 of ``unique``, then those of the fork."""
    pipeline = Pipeline(folder, topology(), "once", warehouse=str(folder / "warehouse"))
    first = sink_history(pipeline.warehouse, "once", 1)["unique"]
    shared = {(part.partition, offset) for part in first for offset in range(part.first_offset, part.end_offset)}
    return [
        Counter(
            (key, value["id"], value.get("amount"), time)
            for partition, offset, key, value, time in pipeline.output(topic)
            if topic != "unique" or (partition, offset) not in shared
        )
        for topic in topics
    ]


def _named(found, kind, side):
    (sink,) = [sink for sink in found["sinks"] if sink["a"] == "unique"]
    return Counter(
        (row["key"], row[side]["value"]["id"], row[side]["value"].get("amount"), _ms(row[side]["timestamp"]))
        for row in sink["difference"]["examples"][kind]
    )


def _ms(text):
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_another_interval(folder, told) -> None:
    found = told(("once",), ("shorter",), code=1)
    before, after = _history(folder, "unique", "unique.shorter")
    assert after - before
    assert _named(found, "only_b", "b") == after - before
    assert _named(found, "only_a", "a") == before - after
    assert not _named(found, "changed", "a")


def test_a_dropped_field_is_told_once(told) -> None:
    found = told(("once",), ("fewer",), code=1)
    (sink,) = [sink for sink in found["sinks"] if sink["a"] == "unique"]
    assert [field["path"] for field in sink["difference"]["schema"]] == ["value.amount"]
    assert (sink["difference"]["only_a"], sink["difference"]["only_b"], sink["difference"]["changed"]) == (0, 0, 0)
    assert told(("once",), ("fewer",), ignored=["value.amount"])["is_empty"]


def test_as_text(told) -> None:
    text = told(("once",), ("shorter",), code=1, output="table", limit=2)
    assert text.startswith("A is once@2, B is shorter@2.\n")
    assert "% of unique differ (" in text
    assert 'all of them of key = "bob"' in text
    assert "Only in B, 2 of " in text
    assert "By time: changed, only in A, only in B" in text
    assert "Since once@1, both took up 30 records." in text
    assert re.search(r"B dropped \d+ fewer as duplicate\.", text)
    assert re.search(r"Dropped, by node\n  KSTREAM-DEDUPLICATE-0000000001: duplicate \d+ in A, \d+ in B", text)
    same = told(("once",), ("same",), output="table")
    assert "unique is equal (" in same
    assert "Both dropped as many, for the same reasons." in same


def test_rows_from_some_time_on(told, tmp_path) -> None:
    whole = told(("once",), ("shorter",), code=1)
    times = [_ms(row["b"]["timestamp"]) for row in _of_unique(whole)["examples"]["only_b"]]
    middle = sorted(times)[len(times) // 2]
    page = tmp_path / "page.html"
    later = told(("once",), ("shorter",), code=1, since=str(middle), page=page)
    assert _of_unique(later)["only_b"] == sum(time >= middle for time in times) < len(times)
    assert "Compared are rows from 1970-01-01T00:00:" in unescape(page.read_text())
    text = told(("once",), ("shorter",), output="table", until="1970-01-01T00:00Z")
    assert "Compared are rows before 1970-01-01T00:00:00.000Z" in text
    assert "unique is equal (0 compared)" in text


def _of_unique(found):
    (sink,) = [sink for sink in found["sinks"] if sink["a"] == "unique"]
    return sink["difference"]


def _compared(difference):
    return sum(difference[name] for name in ("equal", "changed", "only_a", "only_b"))


def test_stores(told, tmp_path) -> None:
    store = "KSTREAM-DEDUPLICATE-0000000001-STORE"
    found = told(("once", 1), ("same", 1), stores=())
    assert [(one["a"], one["shared_partitions"]) for one in found["stores"]["stores"]] == [(store, 1)]
    text = told(("once", 1), ("same", 1), output="table", stores=())
    assert f"store {store} is equal: both share its files." in text
    page = tmp_path / "page.html"
    text = told(("once", 2), ("shorter", 2), code=1, output="table", stores=[store], page=page)
    (sentence,) = re.findall(rf".* of store {store} differ .*", text)
    assert sentence in unescape(page.read_text())
    assert f"store {store} (deduplication)" in text


def test_a_column_of_a_store_may_be_left_out(told) -> None:
    a, b = ("once", 1), ("same", 1)
    assert told(a, b, stores=(), ignored=["source_offset"], tolerances=["source=1"])["is_empty"]
    with pytest.raises(ConfigurationError, match=r"there is no such field \(field source_offst\).*mean source_offset"):
        told(a, b, stores=(), ignored=["source_offst"])
    with pytest.raises(ConfigurationError, match=r"there is no such field \(field source_offset\)"):
        told(a, b, ignored=["source_offset"])


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_on_spark_it_is_the_same(told) -> None:
    assert told(("once",), ("shorter",), 1, on_spark=True) == told(("once",), ("shorter",), 1)


def test_the_page_has_what_the_text_says(told, tmp_path) -> None:
    page = tmp_path / "page.html"
    text = told(("once",), ("shorter",), code=1, output="table", page=page)
    html = unescape(page.read_text())
    sentences = text.split("\n\n")[0].splitlines()
    assert len(sentences) > 1
    for sentence in sentences:
        assert sentence in html
    assert "different" in html


@pytest.mark.parametrize(("mistake", "message"), [
    ({"since": "1970-01-02", "until": "1970-01-01"}, "it ends before it begins"),
    ({"since": "1970-01-02T00:00"}, "the time has no time zone"),
    ({"page": Path("/nowhere/page.html")}, "the page cannot be written"),
    ({"page": Path("/")}, "the page cannot be written"),
    ({"sinks": ["uniqe"]}, "did you mean unique?"),
    ({"ignored": ["value.amout"]}, "did you mean value.amount "),
    ({"tolerances": ["value.amout=1"]}, "did you mean value.amount?"),
    ({"tolerances": ["value.id=1"]}, "there is no such field of numbers"),
    ({"tolerances": ["much"]}, "a tolerance is a number from 0"),
    ({"tolerances": ["-1"]}, "a tolerance is a number from 0"),
    ({"b": ("once", 9)}, "there is no such commit"),
    ({"b": ("once",)}, "both sides are the same commit of the same job.*commit 2.*hindstream try compares"),
    ({"b": ("once", 2)}, "both sides are the same commit of the same job"),
    ({"b": ("nobody",)}, "the job has no commits|there is no such job"),
])  # fmt: skip
def test_mistakes(told, mistake, message) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        told(("once",), mistake.pop("b", ("shorter",)), **mistake)


FILE = """
from datetime import timedelta
import pyarrow.compute as pc
from hindstream import Job, StreamsBuilder

builder = StreamsBuilder("once")
once = builder.stream("events").deduplicate_by_key_value(pc.field("value", "id"), timedelta(seconds={seconds}))
once.to("unique{suffix}")
job = Job("{name}", builder.build())
"""


@pytest.mark.slow
def test_two_files_of_jobs(folder) -> None:
    for file, name, suffix, seconds in (("old.py", "once", "", 60), ("new.py", "shorter", ".shorter", 5)):
        (folder / file).write_text(FILE.format(name=name, suffix=suffix, seconds=seconds))

    def diff(*options):
        given = ("diff", "old.py:job", "new.py:job", "--warehouse", "warehouse", "--output", "json", "--limit", "1000")
        ended = hindstream(*given, *options, cwd=folder)
        return ended.returncode, json.loads(ended.stdout)

    code, whole = diff("--sink", "unique=unique", "--stores", "--explain", "--page", "why.html")
    code_later, later = diff("--since", "1970-01-01T00:00:40Z", "--by", "order", "--tolerance", "value.amount=1e9")
    assert (code, code_later) == (1, 1)
    assert [(sink["a"], sink["b"]) for sink in whole["sinks"]] == [("unique", "unique")]
    assert len(whole["stores"]["stores"]) == 1
    explained = whole["explained"]
    assert explained["why_not_a"] == "it has no such row"
    first = min(_of_unique(whole)["examples"]["only_b"], key=lambda row: row["b"]["timestamp"])
    assert explained["example"]["b"]["timestamp"] == first["b"]["timestamp"]
    assert explained["why_not_b"].startswith("commit 1 was made by another topology than the job has now")
    assert f"B is not explained: {explained['why_not_b']}" in unescape((folder / "why.html").read_text())
    assert "stores" not in later
    assert _of_unique(later)["way"] == "order"
    assert 0 < _compared(_of_unique(later)) < _compared(_of_unique(whole))
    assert "value.amount" not in {field["path"] for field in _of_unique(later)["fields"]}


@pytest.mark.slow
def test_exit_codes_of_the_command(folder) -> None:
    equal, different, wrong = (
        hindstream("diff", "once@2", other, "--warehouse", "warehouse", cwd=folder)
        for other in ("same", "shorter", "once@9")
    )
    assert [ended.returncode for ended in (equal, different, wrong)] == [0, 1, 78]
    assert "% of unique differ (" in different.stdout
