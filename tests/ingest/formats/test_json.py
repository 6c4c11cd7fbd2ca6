"""JSON of any shape against Python's own reader; and rows that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.ingest.formats import json_documents
from statelib.ingest.formats.json import json_rows
from statelib.ingest.sources.find import find_files
from tests.ingest.lake import without_nulls

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.ingest.formats.rows import BadRow

SCALARS = {
    "n": st.integers(-(2**63), 2**63 - 1),
    "x": st.floats(allow_nan=False, allow_infinity=False),
    "s": st.text(max_size=6),
    "b": st.booleans(),
}
VALUES = {
    **SCALARS,
    "l": st.lists(st.one_of(st.none(), SCALARS["n"]), max_size=3),
    "o": st.fixed_dictionaries({}, optional={name: st.one_of(st.none(), SCALARS[name]) for name in "nsb"}),
    "a": st.lists(st.fixed_dictionaries({}, optional={"l": st.lists(SCALARS["s"], max_size=2)}), max_size=2),
}
ROWS = st.lists(
    st.fixed_dictionaries({}, optional={k: st.one_of(st.none(), v) for k, v in VALUES.items()}), max_size=25
)


def read(path: Path, content: bytes) -> tuple[list[dict[str, Any]], list[int], list[BadRow]]:
    path.write_bytes(content)
    (file,) = find_files([str(path)], {})
    rows, numbers, bad = [], [], []
    for part in json_rows(file, {}, {}):
        part.columns.validate(full=True)
        rows += part.columns.to_pylist()
        numbers += part.numbers.tolist()
        bad += part.bad
    return rows, numbers, bad


def written(rows: list[dict[str, Any]], shape: str) -> bytes:
    texts = [json.dumps(row, ensure_ascii=shape == "lines") for row in rows]
    if shape == "lines":
        return "\n".join(texts).encode()
    if shape == "crlf":
        return "".join(f"{text}\r\n" for text in texts).encode()
    if shape == "array":
        return json.dumps(rows).encode()
    if shape == "pretty":
        return json.dumps(rows, indent=2).encode()
    return "".join(f"{json.dumps(row, indent=1)}\n".replace("{}\n", "{\n}\n") for row in rows).encode()


def no_empty(value: Any) -> Any:
    """Structs without any field cannot be stored, and lists of them neither."""
    return without_nulls(value)


@given(
    rows=ROWS,
    shape=st.sampled_from(["lines", "crlf", "array", "pretty", "objects"]),
    block=st.sampled_from([1, 50, 1 << 22]),
)
def test_rows_are_what_python_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], shape: str, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_documents, "_BLOCK_BYTES", block)
        found, numbers, bad = read(tmp_path_factory.mktemp("json") / "x.json", written(rows, shape))
    assert not bad
    assert len(found) == len(rows)
    assert without_nulls(found) == without_nulls(rows)
    assert numbers == sorted(numbers)


LINES = [
    b'{"n": 1}', b'{"n": 2.5}', b'{"s": "x"}', b"{", b"null", b"[1]", b'"x"', b"7", b'{"n": "one"}', b"",
    b'{"n": 1, "n": 2}', b'{"s": "\xff"}', b'{"n": 1} {"n": 2}', b'{"s": null, "l": [null, 3]}', b'{"n": tru}',
    b'{"n": 18446744073709551617}',
]  # fmt: skip
GOOD = {b'{"n": 1}', b'{"n": 2.5}', b'{"s": "x"}', b'{"s": null, "l": [null, 3]}'}


@given(lines=st.lists(st.sampled_from(LINES), max_size=20))
def test_each_row_that_is_none_is_told_with_its_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    first = b'{"n": 3, "s": "first"}'
    found, numbers, bad = read(tmp_path_factory.mktemp("json") / "x.jsonl", b"\n".join([first, *lines]) + b"\n")
    good = [n for n, line in enumerate([first, *lines], 1) if line == first or line in GOOD]
    assert numbers == good
    wrong = [n for n, line in enumerate([first, *lines], 1) if line and n not in good]
    assert [row.row for row in bad] == wrong
    assert without_nulls(found) == [without_nulls(json.loads([first, *lines][n - 1])) for n in good]
    for row in bad:
        assert row.raw == lines[row.row - 2].strip()
        assert row.reason


def test_a_bad_value_is_named_with_its_field(tmp_path: Path) -> None:
    _, _, (bad,) = read(tmp_path / "x.jsonl", b'{"price": 1.5, "n": 1}\n{"price": "dear", "n": 2}\n')
    assert (bad.row, bad.field, bad.reason) == (
        2,
        "price",
        '"dear" is no number (--type price=string takes it as text)',
    )


@pytest.mark.parametrize("depth", [31, 32, 1_000, 100_000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_a_row_that_is_nested_too_deeply_is_a_bad_row(tmp_path: Path, depth: int, opens: str, closes: str) -> None:
    deep = '{"o": ' + opens * depth + "1" + closes * depth + "}"
    rows, _, bad = read(tmp_path / "x.jsonl", f'{{"n": 1}}\n{deep}\n{{"n": 2}}\n'.encode())
    assert [row["n"] for row in rows if row["n"]] == [1, 2]
    assert [(row.row, row.raw) for row in bad] == ([] if depth < 32 else [(2, deep.encode())])


@pytest.mark.parametrize("digits", [20, 400, 5_000])
def test_whole_numbers_of_any_length_are_told(tmp_path: Path, digits: int) -> None:
    large = "1" + "0" * digits + "1"
    _, _, (bad,) = read(tmp_path / "x.jsonl", f'{{"n": 1.5}}\n{{"n": {large}}}\n'.encode())
    assert (bad.row, bad.field) == (2, "n")
    assert "n=decimal(38,0)" in bad.reason


@pytest.mark.parametrize("content", [b'{"n": 1}{"n": 2}', b'{"n": 1} {"n": 2}\n', b'{"n":1}{"n":2}\n{"n":3}'])
def test_objects_one_after_the_other_on_a_line(tmp_path: Path, content: bytes) -> None:
    rows, _, bad = read(tmp_path / "x.json", content)
    assert [row["n"] for row in rows] == list(range(1, 1 + content.count(b"n")))
    assert not bad


@pytest.mark.parametrize("damaged", [b'{"n": 1', b'{"n": {"a": 1}', b'{"n": "', b"x"])
def test_a_first_line_that_is_damaged_is_one_bad_row(tmp_path: Path, damaged: bytes) -> None:
    rows, _, bad = read(tmp_path / "x.jsonl", damaged + b'\n{"n": 2}\n{"n": 3}\n')
    assert [row["n"] for row in rows] == [2, 3]
    assert [(row.row, row.raw) for row in bad] == [(1, damaged)]


@pytest.mark.parametrize(
    ("type_", "good", "wrong"),
    [
        (pa.int64(), [1, -1], [1.5, "1", True]),
        (pa.date32(), ["2013-01-01"], [20130101, "2013-01-01T00:00:00Z"]),
        (pa.timestamp("us", "UTC"), ["2013-01-01T00:00:00+02:00"], [1356998400]),
        (pa.decimal128(10, 2), [1.25, 3], [1.255, "x"]),
        (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 2, "b": "x"}], [{"a": 1.5}, 7]),
    ],
)
def test_a_type_that_is_fixed_stays(tmp_path: Path, type_: pa.DataType, good: list[Any], wrong: list[Any]) -> None:
    rows = [{"n": value, "more": 1} for value in [*good, *wrong]]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (file,) = find_files([str(tmp_path / "x.jsonl")], {})
    (part,) = json_rows(file, {}, {"n": type_}, fixed={"n"})
    assert part.numbers.tolist() == list(range(1, len(good) + 1))
    assert [row.row for row in part.bad] == list(range(len(good) + 1, len(rows) + 1))
    if not pa.types.is_struct(type_):
        assert part.columns.schema.field("n").type == type_


def test_anything_becomes_text_where_that_was_declared(tmp_path: Path) -> None:
    values = ["1", "1.50", '"x"', "null", '{"a": [1, "ü"]}', "true", '1, "n": 2']
    (tmp_path / "x.jsonl").write_text("".join(f'{{"n": {value}}}\n' for value in values))
    (file,) = find_files([str(tmp_path / "x.jsonl")], {})
    (part,) = json_rows(file, {}, {"n": pa.string()}, fixed={"n"}, declared={"n"})
    assert part.columns["n"].to_pylist() == ["1", "1.50", "x", None, '{"a": [1, "ü"]}', "true"]
    assert [row.row for row in part.bad] == [7]


def test_an_array_that_does_not_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ends within a row"):
        read(tmp_path / "x.json", b'[{"n": 1}, {"n": 2}')
