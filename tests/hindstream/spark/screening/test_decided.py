"""Checks that are decided without Great Expectations: it would have said the same."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindstream.spark.expectations.checks import Suite, files_suite, ledger_suite
from hindstream.spark.expectations.flat_tables import flat_schema, pandas_frame, read_flat, table_frame
from hindstream.spark.screening.decided import decidable, has_suspects
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.validation.validator import Validator
from tests.effort import examples
from tests.hindstream.spark.screening.test_screen import CHECKS, ROWS, SCHEMA, WHOLE, check, staged

if TYPE_CHECKING:
    from collections.abc import Callable

    from hindstream.spark.screening.decided import Decidable
    from hindstream.spark.screening.screen import Screen
    from statelib.documents.manifests import AuditCheck

ROWS_OF = [
    check("table_row_count_to_be_between", **kwargs)
    for kwargs in (
        {"min_value": 2}, {"max_value": 2}, {"min_value": 2, "max_value": 3},
        {"min_value": 2, "strict_min": True}, {"max_value": 2.5, "strict_max": True},
    )
] + [check("table_row_count_to_equal", value=2)]  # fmt: skip

MOSTLY = [
    dataclasses.replace(one, kwargs={**one.kwargs, "mostly": mostly}, shown={**one.shown, "mostly": mostly})
    for one, mostly in zip(CHECKS, itertools.cycle([0.5, 0, 0.99, 1.0]), strict=False)
    if one.type != "expect_table_columns_to_match_set"
]

NEVER = [one for one in WHOLE if one.kwargs.get("mostly") is None]
"""Kinds that it never decides."""

NAMES = {"value__i": "value.i", "value__x": "value.x"}


def verdict_of(checks: Decidable | None, may_fail: Callable[[Screen], bool]) -> tuple[AuditCheck, ...] | None:
    return None if checks is None or may_fail(checks.screen) else checks.passed


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Validator:
    return Validator(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
@examples(25)
@given(
    rows=st.lists(ROWS, max_size=5),
    of=st.lists(st.sampled_from([*CHECKS, *MOSTLY, *WHOLE, *ROWS_OF]), min_size=1, max_size=3),
)
def test_what_is_decided_is_what_great_expectations_says(
    tmp_path_factory: pytest.TempPathFactory, validator: Validator, rows: list[Any], of: list[Any]
) -> None:
    warehouse, files = staged(tmp_path_factory.mktemp("staged"), rows)
    suite = Suite("t", of, ("partition", "offset"), NAMES)

    def may_fail(screen: Screen) -> bool:
        found = find_suspects(Scan(warehouse, "t", SCHEMA, screen), files, None)
        return found is None or len(found) > 0

    verdict = verdict_of(decidable(suite, flat_schema(SCHEMA), len(rows)), may_fail)
    if verdict is not None:
        tables = [table for file in files for table in read_flat(warehouse, "t", SCHEMA, file)]
        assert list(verdict) == list(validator.validate(suite, pandas_frame(tables, SCHEMA), run="1").checks)


@pytest.mark.parametrize("one", [*CHECKS, *MOSTLY, *ROWS_OF], ids=str)
def test_what_fails_nowhere_is_decided(one: Any, validator: Validator) -> None:
    suite = Suite("t", [one], ("partition", "offset"))
    verdict = verdict_of(decidable(suite, flat_schema(SCHEMA), 0), lambda _: False)
    said = validator.validate(suite, pandas_frame([], SCHEMA), run="1").checks
    assert verdict == (said if said[0].success else None)


@pytest.mark.parametrize("one", NEVER, ids=str)
def test_what_only_the_whole_table_tells_is_not_decided(one: Any) -> None:
    assert decidable(Suite("t", [one], ()), flat_schema(SCHEMA), 0) is None


NUMBERS = st.sampled_from([None, -1, 0, 1])


@pytest.mark.slow
@examples(25)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["a", "b"])), max_size=3))
def test_small_tables_are_decided_as_great_expectations_says(validator: Validator, rows: list[Any]) -> None:
    files = pa.table(
        {
            "path": [f"f{n}" for n in range(len(rows))],
            **{name: pa.array([row[0] for row in rows], pa.int64()) for name in ("first_offset", "rows")},
            **{name: pa.array([row[1] for row in rows], pa.int64()) for name in ("expected_first_offset", "offsets")},
            "min_timestamp_ms": pa.array([row[2] for row in rows], pa.int64()),
            "columns": pa.array([row[3] for row in rows], pa.string()),
            "expected_columns": pa.array(["a"] * len(rows), pa.string()),
        }
    )
    ledger = pa.table(
        {
            **{name: pa.array(["x"] * len(rows), pa.string()) for name in ("check", "task_id", "node", "topic")},
            **{name: pa.array([0] * len(rows), pa.int64()) for name in ("partition", "expected", "actual")},
            "difference": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    for suite, table in ((files_suite(), files), (ledger_suite(), ledger)):
        said = validator.validate(suite, table_frame(table), run="1").checks
        verdict = verdict_of(
            decidable(suite, table.schema, table.num_rows), lambda screen, table=table: has_suspects(table, screen)
        )
        assert verdict == (said if all(check.success for check in said) else None)


def test_nothing_large_is_imported() -> None:
    code = (
        "import sys; import hindstream.spark.phases.pipeline;"
        "sys.exit(' '.join({'pyspark', 'great_expectations', 'airflow'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
