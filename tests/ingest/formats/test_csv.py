"""CSV as people write it: what is no number stays text, what is wrong is one bad row."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, *contents: bytes, **options: Any) -> tuple[list[Any], list[str]]:
    for n, content in enumerate(contents):
        (folder / f"lake/{n}.csv").parent.mkdir(exist_ok=True)
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
        (("123456789012345678901234567890", "1"), ["123456789012345678901234567890", "1"]),
        (("0", "0.5", "-0"), [0.0, 0.5, -0.0]),
        (("true", "false"), [True, False]),
        (('"a\nb"', '"c,""d"""'), ["a\nb", 'c,"d"']),
    ],
)
def test_values_are_what_stands_there(tmp_path: Path, written: tuple[str, ...], read: list[Any]) -> None:
    assert loaded(tmp_path, rows(*written)) == (read, [])


def test_files_without_rows_say_nothing_of_types(tmp_path: Path) -> None:
    assert loaded(tmp_path, b"", b"at,n\n", rows("1"), b"\n") == ([1], [])


def test_a_mark_and_carriage_returns_are_no_values(tmp_path: Path) -> None:
    assert loaded(tmp_path, b"\xef\xbb\xbfat;n\r\n2013-01-01;1\r\n") == ([1], [])


def test_text_of_another_encoding_is_a_bad_row_until_it_is_named(tmp_path: Path) -> None:
    latin = "at,n\n2013-01-01,ü\n2013-01-02,x\n".encode("latin-1")
    values, (bad,) = loaded(tmp_path, latin)
    assert values == ["x"]
    assert "no text in UTF-8 (--encoding names another)" in bad
    (tmp_path / "other").mkdir()
    assert loaded(tmp_path / "other", latin, encoding="latin-1") == (["ü", "x"], [])


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
