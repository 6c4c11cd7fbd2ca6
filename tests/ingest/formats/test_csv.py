"""CSV as people write it: what is no number stays text, what is wrong is one bad row."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.formats.csv import CsvDialect
from statelib.ingest.formats.read import FileReader
from statelib.ingest.sources.files import SourceFile
from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

pytestmark = pytest.mark.thorough


def loaded(folder: Path, *contents: bytes, **options: Any) -> tuple[list[Any], list[str]]:
    for n, content in enumerate(contents):
        (folder / f"lake/{n}.csv").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"lake/{n}.csv").write_bytes(content)
    topic = LakeTopic("t", f"{folder}/lake", timestamp="at", partitions=1, **options)
    done = load(topic, folder / "w", "quarantine")
    values = [record["value"]["n"] for record in records_of(folder / "w", "t")] if done.records else []
    bad = [record["value"]["reason"] for record in records_of(folder / "w", "t-quarantine")] if done.bad_rows else []
    return values, bad


def rows(*values: str, names: str = "at,n") -> bytes:
    return "\n".join([names, *(f"2013-01-0{n},{value}" for n, value in enumerate(values, 1))]).encode() + b"\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (("1", "2"), [1, 2]),
        (("1", "2.5", "NA", ""), [1.0, 2.5, None, None]),
        (("01234", "99999"), ["01234", "99999"]),
        (("1234567890123456", "1"), [1234567890123456, 1]),
        (("1234567890123456", "0.5"), ["1234567890123456", "0.5"]),
        (("123456789012345678901234567890", "1"), ["123456789012345678901234567890", "1"]),
        (("0", "0.5", "-0"), [0.0, 0.5, -0.0]),
        (("true", "false"), [True, False]),
        (('"a\nb"', '"c,""d"""'), ["a\nb", 'c,"d"']),
    ],
)
def test_values_are_what_stands_there(tmp_path: Path, written: tuple[str, ...], read: list[Any]) -> None:
    assert loaded(tmp_path, rows(*written)) == (read, [])


def test_an_empty_value_at_the_end_of_a_file_is_null(tmp_path: Path) -> None:
    assert loaded(tmp_path, b'at,m,n\n2013-01-01,"",x\n2013-01-02,"",') == (["x", None], [])


def test_files_without_rows_say_nothing_of_types(tmp_path: Path) -> None:
    assert loaded(tmp_path, b"", b"at,n\n", rows("1"), b"\n", b"\n\n" + rows("2")) == ([1, 2], [])


def test_a_mark_and_carriage_returns_are_no_values(tmp_path: Path) -> None:
    assert loaded(tmp_path, b"\xef\xbb\xbfat;n\r\n2013-01-01;1\r\n") == ([1], [])


def test_text_of_another_encoding_is_a_bad_row_until_it_is_named(tmp_path: Path) -> None:
    latin = "at,n\n2013-01-01,ü\n2013-01-02,x\n".encode("latin-1")
    values, (bad,) = loaded(tmp_path, latin)
    assert values == ["x"]
    assert "no text in UTF-8 (--encoding names another)" in bad
    (tmp_path / "other").mkdir()
    assert loaded(tmp_path / "other", latin, encoding="latin-1") == (["ü", "x"], [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252", "utf-8"])
def test_any_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    assert loaded(tmp_path, rows("ü", "x").decode().encode(encoding), encoding=encoding) == (["ü", "x"], [])


def test_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the names of the columns are no text in utf-8") as caught:
        loaded(tmp_path, "at,n\n2013-01-01,x\n".encode("utf-16"))
    assert "--encoding" in str(caught.value.next_step)


@pytest.mark.parametrize("options", [{"encoding": "klingon"}, {"encoding": "rot13"}, {"delimiter": "||"}])
def test_encodings_and_delimiters_that_are_none_are_told(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="no such encoding|one character"):
        loaded(tmp_path, rows("1"), **options)


def test_bytes_that_are_no_text_stay_in_their_row(tmp_path: Path) -> None:
    content = b"at,n\n2013-01-01,\xfc,3\n2013-01-02,\xfc\n2013-01-03,\xe2\x82\xac\n2013-01-04,\xf4\x8f\xbf\xbd\n"
    values, bad = loaded(tmp_path, content)
    assert values == ["€", "\U0010fffd"]
    assert [reason.partition(" (")[0] for reason in bad] == [
        "it has 3 values instead of 2", "n: '�' is no text in UTF-8",
    ]  # fmt: skip
    raw = [record["value"]["value"] for record in records_of(tmp_path / "w", "t-quarantine")]
    assert raw == [b"2013-01-01,\xfc,3", b"2013-01-02,\\xfc"]


@pytest.mark.parametrize("names", ["a,a_3,a", "a,a,a_2", ",column_1,x", "a,,a"])
def test_every_column_has_a_name_of_its_own(tmp_path: Path, names: str) -> None:
    values, bad = loaded(tmp_path, f"at,n,{names}\n2013-01-01,1,2,3,4\n".encode())
    (record,) = records_of(tmp_path / "w", "t")
    assert (values, bad, sorted(record["value"].values())) == ([1], [], [1, 2, 3, 4])


def test_rows_may_be_longer_than_any_block(tmp_path: Path) -> None:
    long = '"' + "x\n" * 5_000_000 + '"'
    content = f"at,n\n2013-01-01,a\n2013-01-02\n2013-01-03,{long}\n2013-01-04\n2013-01-05,b\n".encode()
    values, bad = loaded(tmp_path, content)
    assert (values, len(bad)) == (["a", "x\n" * 5_000_000, "b"], 2)
    headers = [{one["key"]: one["value"] for one in r["headers"]} for r in records_of(tmp_path / "w", "t-quarantine")]
    assert [one["row"] for one in headers] == [b"2", b"4"]


@pytest.mark.parametrize("rest", ['"abc', '"abc\n', '"a""b\n', '"\n2013-01-03,c\n', '"b\n2013-01-03,c'])
def test_a_quote_that_is_not_closed_ends_the_load(tmp_path: Path, rest: str) -> None:
    with pytest.raises(InputError, match="a quote is not closed") as caught:
        loaded(tmp_path, rows("a", rest))
    assert caught.value.place["row"] == 2


def test_a_quote_that_is_not_closed_before_other_values_ends_the_load(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a quote is not closed"):
        loaded(tmp_path, b'at,n\n2013-01-01,a\n"2013-01-02,b\n2013-01-03,c\n')


def test_digits_that_a_number_would_lose_later_on_are_a_bad_row(tmp_path: Path) -> None:
    for folder, many, last in (("zeros", "12345", "00123"), ("doubles", "0.5", "12345678901234567")):
        content = b"at,n\n" + f"2013-01-01,{many}\n".encode() * 90_000 + f"2013-01-02,{last}\n".encode()
        values, (bad,) = loaded(tmp_path / folder, content)
        assert len(values) == 90_000
        assert "would lose digits" in bad
        assert "--type n=string" in bad


def test_a_declared_type_may_cost_digits(tmp_path: Path) -> None:
    assert loaded(tmp_path, rows("007", "12345678901234567"), types={"n": "double"}) == ([7.0, 12345678901234568.0], [])


def test_rows_of_another_length_are_bad_rows(tmp_path: Path) -> None:
    ragged = b"at,n\n2013-01-01,1\n2013-01-02\n2013-01-03,1,2\n2013-01-04,4\n"
    assert loaded(tmp_path, ragged) == ([1, 4], ["it has 1 values instead of 2", "it has 3 values instead of 2"])


def test_a_file_that_ends_too_early_ends_the_load(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/x.csv.gz").write_bytes(gzip.compress(rows("1") * 1000)[:-20])
    with pytest.raises(InputError, match="Truncated compressed stream"):
        load(LakeTopic("t", f"{tmp_path}/lake", timestamp="at"), tmp_path / "w", "quarantine")
    assert not (tmp_path / "w/topics").exists()


def test_a_time_zone_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such time zone"):
        loaded(tmp_path, rows("1"), timezone="Mars/Olympus")


def read(path: Path, decimal_separator: str) -> list[dict[str, Any]]:
    """The rows of a file with the types that it looks like."""
    file, reader = (
        SourceFile(str(path), path.stat().st_size, ""),
        FileReader({}, "csv", CsvDialect(decimal_separator=decimal_separator)),
    )
    types = {field.name: field.type for field in reader.schema(file)}
    batches = [rows.columns for rows in replace(reader, types=types).rows(file)]
    return [row for batch in batches for row in batch.to_pylist()]


@given(
    values=st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=8),
    is_grouped=st.booleans(),
    places=st.sampled_from([0, 2]),
)
def test_decimal_commas(
    tmp_path_factory: pytest.TempPathFactory, values: list[Decimal], is_grouped: bool, places: int
) -> None:
    path = tmp_path_factory.mktemp("commas") / "a.csv"
    in_english = [f"{value:{',' if is_grouped else ''}.{places}f}" for value in values]
    texts = [text.translate(str.maketrans(",.", ".,")) for text in in_english]
    path.write_text("amount;note\n" + "".join(f"{text};{text} EUR\n" for text in ["NA", *texts]))
    found = read(path, ",")
    assert [row["amount"] for row in found] == [None, *(float(text.replace(",", "")) for text in in_english)]
    assert [row["note"] for row in found[1:]] == [f"{text} EUR" for text in texts]


def test_a_point_is_no_decimal_point_where_a_comma_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a;b;c\n1,5;2.500;1.5\n2.5;12;2\n")
    assert read(path, ",") == [{"a": "1,5", "b": 2500, "c": "1.5"}, {"a": "2.5", "b": 12, "c": "2"}]


def test_an_unexpected_comma_is_a_bad_row_that_names_the_option(tmp_path: Path) -> None:
    content = b"at;n\n" + b"".join(b"2013-01-01;1\n" for _ in range(300_000)) + b"2013-01-01;1.822,84\n"
    values, (bad,) = loaded(tmp_path, content)
    assert len(values) == 300_000
    assert bad == "n: '1.822,84' is no int64 (--decimal-separator , reads it as a number)"


def test_a_bad_row_stands_in_the_quarantine_as_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/a.csv").write_text(
        "at;n;m\n2013-01-01;1;2\nn/a;007;NULL\n;1;2\n2013-01-01;8;1,5 x;9\n1850-01-01;5;NaN\n"
    )
    topic = LakeTopic("t", f"{tmp_path}/lake", timestamp="at", partitions=1, types={"n": "int64"})
    assert load(topic, tmp_path / "w", "quarantine").bad_rows == 4
    raw = [record["value"]["value"].decode() for record in records_of(tmp_path / "w", "t-quarantine")]
    assert raw == ["n/a;007;NULL", ";1;2", "2013-01-01;8;1,5 x;9", "1850-01-01;5;NaN"]
