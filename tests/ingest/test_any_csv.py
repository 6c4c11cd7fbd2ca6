"""Any CSV that people and programs write, against Python's own reader: each row is a record or a bad row, unchanged."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import io
import itertools
import lzma
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.ingest.formats import csv as csv_format
from statelib.ingest.formats import csv_text
from statelib.ingest.formats.text_values import NULLS
from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of, without_nulls

if TYPE_CHECKING:
    pass

AT = "2013-01-01"
NAMES = ["n", "a b", "a.b", 'say "x"', "{n}", "ü", "x,y;z|\tw", "a\nb", "@x", "value", "key", "offset", "N/A", "007"]
TEXT = st.one_of(
    st.sampled_from(
        ["", "x", '"', '""', "a,b", "a;b", "a\nb", "a\r\nb", " x ", "ü€😀", "\\", "'", "NA", "\x00", "#", "-"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
CODECS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
Cell = tuple[str | None, bool]
"""Text, null where nothing stands there; and whether it is in quotes without need."""


@st.composite
def csv_files(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower))
    cell = st.one_of(st.just((None, False)), st.tuples(TEXT, st.booleans()))
    rows = draw(
        st.lists(
            st.one_of(
                st.lists(cell, min_size=len(names), max_size=len(names)),
                st.sampled_from(["blank", "short", "long", "bytes"]),
            ),
            max_size=12,
        )
    )
    return {
        "names": names,
        "rows": rows,
        "delimiter": draw(st.sampled_from([",", ";", "\t", "|"])),
        "line": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "mark": draw(st.booleans()),
        "ends": draw(st.booleans()),
        "codec": draw(st.sampled_from(sorted(CODECS))),
    }


def quoted(text: str | None, delimiter: str, *, always: bool) -> str:
    if text is None:
        return ""
    if not always and text and not re.search(f'[\r\n"{re.escape(delimiter)}]', text):
        return text
    return '"' + text.replace('"', '""') + '"'


def written(file: dict[str, Any]) -> tuple[bytes, list[tuple[int, list[str | None]]], list[int]]:
    """The content, the good rows with their numbers, and the numbers of the bad ones."""
    between, names = file["delimiter"], ["at", *file["names"]]
    lines = [between.join(quoted(name, between, always=False) for name in names).encode()]
    good, bad = [], []
    number = 0
    for row in file["rows"]:
        if row == "blank":
            lines.append(b"")
            continue
        number += 1
        if row == "bytes":
            lines.append(between.join([AT, *["\xff"] * (len(names) - 1)]).encode("latin-1"))
            bad.append(number)
        elif isinstance(row, str):
            lines.append(between.join([AT, *["x"] * (len(names) - 2 if row == "short" else len(names))]).encode())
            bad.append(number)
        else:
            lines.append(between.join([AT, *(quoted(text, between, always=many) for text, many in row)]).encode())
            good.append((number, [text for text, _ in row]))
    end = file["line"].encode()
    content = end.join(lines) + (end if file["ends"] else b"")
    return (b"\xef\xbb\xbf" if file["mark"] else b"") + content, good, bad


@given(
    files=st.lists(csv_files(), min_size=1, max_size=3),
    block_bytes=st.sampled_from([40, 300, 4 << 20]),
    budget_bytes=st.sampled_from([1, 1 << 26]),
)
def test_every_row_is_a_record_or_a_bad_row(
    tmp_path_factory: pytest.TempPathFactory, files: list[dict[str, Any]], block_bytes: int, budget_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "lake").mkdir()
    wanted: list[dict[str, str]] = []
    wrong: list[tuple[str, str]] = []
    fields = {name: "string" for file in files for name in file["names"]}
    if len({name.lower() for name in fields}) < len(fields):
        return
    for n, file in enumerate(files):
        content, good, bad = written(file)
        path = folder / f"lake/{n}.csv{file['codec']}"
        path.write_bytes(CODECS[file["codec"]](content))
        wanted += [without_nulls(dict(zip(file["names"], row, strict=True))) for _, row in good]
        wrong += [(str(path), str(number)) for number in bad]
        _check_model(content, file, good, bad)
    topic = LakeTopic("t", f"{folder}/lake", timestamp="at", partitions=1, order="arrival", types=fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_format, "_BLOCK_BYTES", block_bytes)
        patch.setattr(csv_text, "_BEGINNING_BYTES", block_bytes)
        done = load(topic, folder / "w", "quarantine", budget_bytes=budget_bytes)
    assert (done.records, done.bad_rows) == (len(wanted), len(wrong))
    if wanted:
        assert [without_nulls(record["value"]) for record in records_of(folder / "w", "t")] == wanted
    if wrong:
        headers = [record["headers"] for record in records_of(folder / "w", "t-quarantine")]
        places = [
            tuple({one["key"]: one["value"].decode() for one in each}[k] for k in ("file", "row")) for each in headers
        ]
        assert places == wrong


def _check_model(content: bytes, file: dict[str, Any], good: list[Any], bad: list[int]) -> None:
    """Python's reader finds the same rows."""
    text = content.decode("utf-8-sig", errors="replace")
    read = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=file["delimiter"]) if row][1:]
    assert len(read) == len(good) + len(bad)
    for number, row in good:
        assert read[number - 1][1:] == [value or "" for value in row]


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=True).map(repr),
    st.sampled_from([
        "007", "-0", "0", "1e5", "1E-3", ".5", "5.", "+1", " 1", "1 ", "1_000", "0x10", "1,5", "NaN", "inf", "-inf",
        "123456789012345678", "12345678901234567890", "0.1234567890123456789", "1e400", "00", "-007", "٣",
    ]),
)  # fmt: skip
OTHERS = st.one_of(
    st.sampled_from(
        ["true", "False", "TRUE", "T", "yes", "0", "1", "2013-01-01", "2013-01-01 05:00", "05:00", "x", ""]
    ),
    st.sampled_from([null.as_py().decode() for null in NULLS]),
    st.dates(dt.date(1, 1, 1)).map(str),
)


def is_same(value: Any, text: str) -> bool:  # noqa: PLR0911 - one for each type
    """Whether a value of a topic is what stands in the file."""
    if value is None:
        return text.strip().encode() in NULLS.to_pylist()
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool):
        return text.strip().lower() == str(value).lower() or text.strip() == str(int(value))
    if isinstance(value, int):
        return re.fullmatch(r"\s*[+-]?(0|[1-9]\d*)\s*", text) is not None and int(text) == value
    if isinstance(value, float):
        digits = re.fullmatch(r"\s*[+-]?(\d+)\s*", text)
        exact = digits is None or (len(digits[1]) < 16 and (digits[1] == "0" or digits[1][0] != "0"))
        return exact and (float(text) == value or (value != value and text.lower() == "nan"))  # noqa: PLR0124
    if isinstance(value, dt.datetime):
        return dt.datetime.fromisoformat(text.strip()) == value
    return dt.date.fromisoformat(text.strip()) == value  # type: ignore[no-any-return]


@given(
    columns=st.lists(st.lists(st.one_of(NUMBERS, OTHERS), min_size=1, max_size=8), min_size=1, max_size=3),
    mostly=st.sampled_from([[], ["1"] * 30, ["1.5"] * 30, ["true"] * 30, ["2013-01-01"] * 30, ["x"] * 30]),
    sample_bytes=st.sampled_from([64, 1 << 20]),
)
def test_no_value_is_changed_by_the_type_that_was_found(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[str]], mostly: list[str], sample_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "lake").mkdir()
    texts = [[*mostly, *column] for column in columns]
    rows = list(itertools.zip_longest(*texts, fillvalue="x"))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["at", *(f"c{n}" for n in range(len(columns)))])
    writer.writerows([AT, *row] for row in rows)
    (folder / "lake/a.csv").write_text(out.getvalue(), encoding="utf-8")
    topic = LakeTopic("t", f"{folder}/lake", timestamp="at", partitions=1, order="arrival")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_BEGINNING_BYTES", sample_bytes)
        if all(text == "" for row in rows for text in row):
            return
        done = load(topic, folder / "w", "quarantine")
    assert done.records + done.bad_rows == len(rows)
    bad = set()
    if done.bad_rows:
        headers = [record["headers"] for record in records_of(folder / "w", "t-quarantine")]
        bad = {int({one["key"]: one["value"] for one in each}["row"]) for each in headers}
    good = [row for number, row in enumerate(rows, 1) if number not in bad]
    for record, row in zip(records_of(folder / "w", "t") if good else [], good, strict=True):
        for n, text in enumerate(row):
            value = record["value"].get(f"c{n}")
            assert is_same(value, text), (value, text)
