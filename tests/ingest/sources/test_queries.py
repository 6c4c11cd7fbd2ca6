"""What a query is called, so that it is loaded once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.files import SourceFile
from statelib.ingest.sources.find import find_files
from statelib.ingest.sources.queries import casting_query

RESULT = SourceFile("/w/topics/t/_queries/1/0.parquet", 7, "", format="parquet")
SPACES = st.text(" \n\t", min_size=1, max_size=3)
WORDS = ("SELECT", "*", "FROM", "t", "WHERE", "a = ' x  y '", 'AND `b  c` = "\\"  "')


def version_of(source: str) -> str:
    (file,) = find_files([source], {}, run_query=lambda _: [RESULT])
    return file.version


@given(spaces=st.lists(SPACES, min_size=len(WORDS), max_size=len(WORDS)), end=st.sampled_from(["", ";", " ;\n"]))
def test_white_space_makes_no_other_query(spaces: list[str], end: str) -> None:
    text = "".join(space + word for space, word in zip(spaces, WORDS, strict=True))
    assert version_of(f"sql:{text}{end}") == version_of(f"sql:{' '.join(WORDS)}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ("SELECT `a  b`", "SELECT `a b`"),
        ('SELECT "it\'s  1"', 'SELECT "it\'s 1"'),
        ("SELECT 1", "SELECT 11"),
        ("SELECT 1", "SELECT 1 -- again"),
        ("SELECT a", "select a"),
    ],
)
def test_all_else_does(one: str, other: str) -> None:
    assert version_of(f"sql:{one}") != version_of(f"sql:{other}")


def test_a_query_that_was_loaded_is_not_run() -> None:
    loaded = {RESULT.path: (RESULT.size_bytes, version_of("sql:SELECT 1"))}
    (known,) = find_files(["sql:SELECT  1;"], {}, loaded)
    assert (known.path, known.version) == (RESULT.path, loaded[RESULT.path][1])
    with pytest.raises(ConfigurationError, match="a query is run by Spark"):
        find_files(["sql:SELECT 2"], {}, loaded)


@pytest.mark.parametrize(
    ("path", "type_", "query"),
    [
        (
            "/lake/a.parquet",
            pa.decimal128(9, 2),
            "'sql:SELECT * EXCEPT (`n`), CAST(`n` AS DECIMAL(9, 2)) AS `n` FROM parquet.`/lake/a.parquet`'",
        ),
        (
            "s3://lake/a.parquet",
            pa.timestamp("us", "UTC"),
            "'sql:SELECT * EXCEPT (`n`), CAST(`n` AS TIMESTAMP) AS `n` FROM parquet.`s3a://lake/a.parquet`'",
        ),
        ("/lake/a.csv", pa.int64(), None),
        ("/lake/a.parquet", pa.list_(pa.int64()), None),
    ],
)
def test_a_query_for_a_field_of_another_type(path: str, type_: pa.DataType, query: str | None) -> None:
    assert casting_query(SourceFile(path, 1, ""), "n", type_) == query
