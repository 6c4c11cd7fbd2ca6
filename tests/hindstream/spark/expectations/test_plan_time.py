"""What a job expects is checked before anything is replayed: against Great Expectations, and the sinks' columns."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from great_expectations.expectations.row_conditions import Column

from hindstream.doctor.expectations import check_job_expectations
from hindstream.spark.expectations.known_parameters import PARAMETERS
from hindstream.spark.expectations.plan_time import check_expectations
from hindstream.spark.phases import plan
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path
from statelib.dsl import StreamsBuilder
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Expectation, Job, expect
from statelib.settings.settings import Settings
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema

if TYPE_CHECKING:
    from pathlib import Path

VALUE = pa.struct({
    "n": pa.int64(),
    "humidity": pa.float64(),
    "price": pa.decimal128(10, 2),
    "name": pa.string(),
    "ok": pa.bool_(),
    "at": pa.timestamp("ms", "UTC"),
    "tags": pa.list_(pa.string()),
})  # fmt: skip
SCHEMA = topic_schema(pa.string(), VALUE)


@pytest.fixture
def warehouse(tmp_path: Path) -> Storage:
    storage = Storage(str(tmp_path / "warehouse"))
    archive = TopicArchive.create(storage.uri(topic_path("in")), SCHEMA, 1, topic="in")
    columns = pa.schema([SCHEMA.field(name) for name in ("key", "value", "timestamp")])
    append_records(archive, pa.Table.from_pylist([{"key": "k", "value": {}, "timestamp": 1}], columns), attempt="a",
           app_id="t", app_version=1)  # fmt: skip
    return storage


def job(*expectations: Expectation) -> Job:
    builder = StreamsBuilder("job")
    builder.stream("in").peek(lambda columns: None).to("out")
    return Job("job", builder.build(), {"out": expectations})


BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
A_CONDITION = (Column("value.n") > 1) & Column("key").is_not_null()
OF_NO_COLUMN = (Column("value.n") > 1) | (Column("value.m") > 1)
QUANTILE = "expect_column_quantile_values_to_be_between"
GOOD = [
    expect(BETWEEN, column="value.n", min_value=0, max_value=2**70, mostly=0.9, strict_min=True),
    expect(BETWEEN, column="value.price", min_value="1.10", max_value=1.1),
    expect(BETWEEN, column="value.at", min_value="2024-01-01"),
    expect(BETWEEN, column="value__n", min_value=0, row_condition='col("value.humidity") > 1'),
    expect(IN_SET, column="value.name", value_set=["a", None]),
    expect("expect_compound_columns_to_be_unique", column_list=["key", "value.n"], ignore_row_if="never"),
    expect("expect_table_columns_to_match_set", column_set=["key", "no such column"]),
    expect("expect_column_pair_values_to_be_equal", column_A="value.n", column_B="offset"),
    expect(QUANTILE, column="value.n", quantile_ranges={"quantiles": [0, 1.0], "value_ranges": [[None, 3], [0, 1e9]]}),
    expect("expect_multicolumn_sum_to_equal", column_list=["value.n", "offset"], sum_total=3),
    expect("expect_column_pair_values_to_be_in_set", column_A="value.n", column_B="key", value_pairs_set=[(1, "a")]),
    expect(BETWEEN, column="value.n", min_value=0, row_condition=A_CONDITION),
    expect("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch}"),
]
WRONG: list[tuple[Expectation, str]] = [
    (expect("expect_colum_values_to_be_between", column="value.n"), f"no expect_colum_values.*did you mean {BETWEEN}"),
    (expect("nonsense", column="value.n"), "Great Expectations has no nonsense.*all of them are at https"),
    (expect(BETWEEN, column="value.n", max_valu=3), r"no parameter max_valu.*did you mean max_value\b.*min_value"),
    (expect(BETWEEN, min_value=3), f"{BETWEEN} needs column"),
    (expect(IN_SET, column="value.n"), "needs value_set"),
    (expect(BETWEEN, column="value.humidty", min_value=3),
     r"column value\.humidty, .*topic out.*did you mean value\.humidity"),
    (expect(BETWEEN, column="value.zzz", min_value=3),
     r"the columns are offset, timestamp, key, value\.n"),
    (expect(BETWEEN, column="value", min_value=3), "is about value, which has fields"),
    (expect("expect_column_values_to_not_be_null", column="value.tags"), "column value.tags"),
    (expect("expect_compound_columns_to_be_unique", column_list=["key", "value.m"]), r"column value\.m"),
    (expect("expect_column_pair_values_to_be_equal", column_A="value.n", column_B="value.o"), r"column value\.o"),
    (expect(BETWEEN, column="value.n", min_value=0, row_condition='col("value.m") > 1'), r"column value\.m"),
    (expect(BETWEEN, column="value.n", min_value="a"), "has min_value 'a', and value.n is int64: give a number"),
    (expect(BETWEEN, column="value.n", min_value=3, max_value=2), "min_value above its max_value"),
    (expect(BETWEEN, column="value.ok", min_value=0), "value.ok is bool: name a value_set"),
    (expect(BETWEEN, column="value.at", min_value="soon"), "give a time in ISO 8601"),
    (expect(BETWEEN, column="value.name", min_value=1), "give a string"),
    (expect(BETWEEN, column="value.humidity", min_value=float("nan")), "give a number"),
    (expect(IN_SET, column="value.n", value_set=["1"]), "has value_set '1', and value.n is int64"),
    (expect(IN_SET, column="value.n", value_set=[True]), "has value_set True"),
    (expect(IN_SET, column="value.n", value_set="abc"), "no list"),
    (expect("expect_column_values_to_match_regex", column="value.n", regex="1"), "asks for text"),
    (expect("expect_column_mean_to_be_between", column="value.name", min_value=1), "asks for numbers"),
    (expect("expect_column_pair_values_to_be_equal", column_A="value.n", column_B="value.name"), "of one kind"),
    (expect("expect_column_pair_values_to_be_equal", column_A="value.price", column_B="value.humidity"), "of one kind"),
    (expect("expect_column_pair_values_to_be_equal", column_A="key", column_B="key", ignore_row_if="never?"),
     "ignore_row_if 'never\\?'.*did you mean never"),
    (expect(BETWEEN, column="value.n", min_value=1, mostly=90), "mostly 90.*from 0 to 1"),
    (expect("expect_column_values_to_match_like_pattern", column="value.name", like_pattern="a%"),
     "no answer that pandas and Spark agree on.*match_regex"),
    (expect("expect_column_values_to_be_of_type", column="value.n", type_="int64"), "every run compares the types"),
    (expect("expect_column_values_to_match_regex", column="value.name", regex="["),
     r"cannot be read, '\[': unterminated"),
    (expect("expect_column_values_to_match_regex_list", column="value.name", regex_list=["a", "("]), "cannot be read"),
    (expect("expect_column_sum_to_be_between", column="value.n", min_value="1"), "has min_value '1': give a number"),
    (expect("expect_column_mean_to_be_between", column="value.n", min_value=2, max_value=1), "above its max_value"),
    (expect("expect_column_value_lengths_to_equal", column="value.name", value="3"), "value '3': give a number"),
    (expect("expect_table_row_count_to_equal", value="many"), "value 'many': give a number"),
    (expect(QUANTILE, column="value.n", quantile_ranges=[0.5]), "quantile_ranges .*value_ranges"),
    (expect(QUANTILE, column="value.n", quantile_ranges={"quantiles": [0.5, 1], "value_ranges": [[0, 1]]}),
     "as many of one as of the other"),
    (expect(QUANTILE, column="value.n", quantile_ranges={"quantiles": [50], "value_ranges": [[0, 1]]}),
     "as many of one as of the other"),
    (expect(QUANTILE, column="value.n", quantile_ranges={"quantiles": [0.5], "value_ranges": [[1, 0]]}),
     r"value range \[1, 0\]"),
    (expect("expect_column_most_common_value_to_be_in_set", column="value.n", value_set=[1.5]), "can have no value"),
    (expect("expect_column_pair_values_to_be_in_set", column_A="value.n", column_B="key", value_pairs_set=[[1.5, "a"]]),
     "can have no pair"),
    (expect("expect_column_pair_values_to_be_in_set", column_A="value.n", column_B="key", value_pairs_set=[1]),
     "has 1 in its value_pairs_set"),
    (expect("expect_multicolumn_sum_to_equal", column_list=["value.n", "value.name"], sum_total=1), "of one kind"),
    (expect("expect_multicolumn_sum_to_equal", column_list=["value.n", "offset"], sum_total="1"), "sum_total '1'"),
    (expect("expect_multicolumn_values_to_be_equal", column_list=["value.n"]), "two columns or more"),
    (expect("expect_column_values_to_not_be_outliers", column="value.price"), "asks for integers or doubles"),
    (expect(BETWEEN, column="value.n", min_value=1, row_condition="value.n > 1 and"),
     "cannot be read: value.n > 1 and.*write it as"),
    (expect(BETWEEN, column="value.n", min_value=1, row_condition="key == 'a'", condition_parser="pandas"),
     "for pandas alone"),
    (expect(BETWEEN, column="value.n", min_value=1, row_condition=OF_NO_COLUMN), r"column value\.m"),
]  # fmt: skip


def test_what_can_be_asked_of_the_sink_is_let_pass(warehouse: Storage) -> None:
    assert check_expectations(job(*GOOD), warehouse) == len(GOOD)
    assert check_expectations(job(), warehouse) == 0


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_is_told_with_what_was_meant(warehouse: Storage, wrong: Expectation, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        check_expectations(job(*GOOD, wrong), warehouse)
    assert raised.value.place["topic"] == "out"
    assert wrong.type in str(raised.value)


def test_it_is_told_before_anything_is_planned(warehouse: Storage) -> None:
    settings = Settings(warehouse=warehouse.uri(""))
    with pytest.raises(ConfigurationError, match="did you mean"):
        plan.run(job(WRONG[0][0]), settings)
    assert not warehouse.list("jobs")
    assert open_archive_if_present(warehouse, "out") is None


def test_the_doctor_tells_it_too(warehouse: Storage) -> None:
    settings = Settings(warehouse=warehouse.uri(""))
    (finding,) = check_job_expectations(job(*GOOD), settings)
    assert (finding.state, finding.what) == ("ok", f"{len(GOOD)} can be asked")
    with pytest.raises(ConfigurationError, match="did you mean"):
        list(check_job_expectations(job(WRONG[0][0]), settings))


def parameters_of_great_expectations() -> dict[str, dict[str, bool]]:
    """By expectation of the library, its own parameters, and whether they must be given."""
    from great_expectations.expectations import core, expectation  # noqa: PLC0415

    import hindstream.spark.validation.validator  # noqa: F401, PLC0415  (quietly)

    common = {*expectation.Expectation.__fields__, "library_metadata", "batch_id", "row_condition", "condition_parser"}
    found: dict[str, dict[str, bool]] = {}
    for kind in vars(core).values():
        if isinstance(kind, type) and issubclass(kind, expectation.Expectation):
            fields: dict[str, Any] = kind.__fields__
            found[kind.expectation_type] = {
                name: bool(field.required) for name, field in fields.items() if name not in common
            }
    return dict(sorted(found.items()))


def test_the_names_are_those_of_great_expectations() -> None:
    """If not: `known_parameters` has to have what `parameters_of_great_expectations` gives."""
    assert parameters_of_great_expectations() == PARAMETERS


def test_planning_does_not_import_great_expectations() -> None:
    """It takes seconds."""
    code = "import sys, hindstream.spark.phases.plan; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
