"""JSON of any shape against Python's own reader; and rows that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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
    assert (bad.row, bad.field, bad.reason) == (2, "price", '"dear" is no number')


def test_an_array_that_does_not_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ends within a row"):
        read(tmp_path / "x.json", b'[{"n": 1}, {"n": 2}')
