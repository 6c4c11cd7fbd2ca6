"""A job as a contract: valid by the standard's JSON schema, and read back as the same checks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from open_data_contract_standard import model
from typer.testing import CliRunner

from hindstream.cli.main import app
from hindstream.contracts.contract import contract, load_contract
from hindstream.contracts.export import exported
from hindstream.contracts.logical_types import LOGICAL_TYPE
from hindstream.runs import open_warehouse
from hindstream.spark.expectations.plan_time import check_expectations
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Expectation, Job, expect, load_job
from statelib.topics.parquet.schema import topic_schema
from tests.effort import examples
from tests.hindstream.spark.orders import JOB_FILE, VALUE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

STANDARD = json.loads(Path(model.__file__).with_name("schema.json").read_text())
SCHEMA = topic_schema(pa.string(), VALUE)
TEXTS = st.sampled_from(["value.order_id", "value.country", "key"])
NUMBERS = st.floats(-10, 10).map(lambda value: round(value, 3)) | st.integers(-5, 5)
MOSTLY = st.fixed_dictionaries({}, optional={"mostly": st.integers(0, 1000).map(lambda n: n / 1000)})
ENDS = st.fixed_dictionaries(
    {"min_value": NUMBERS},
    optional={"max_value": NUMBERS, "strict_min": st.booleans(), "strict_max": st.booleans(), "mostly": st.just(0.5)},
)
COUNTS = st.fixed_dictionaries(
    {"max_value": st.integers(0, 9)},
    optional={"min_value": st.integers(0, 9), "strict_min": st.just(True), "strict_max": st.booleans()},
)


def said(type_: str, *parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Expectation]:
    merged = st.tuples(*parts).map(lambda found: {name: value for part in found for name, value in part.items()})
    return st.builds(Expectation, st.just(type_), merged, st.sampled_from(["fail", "warn"]))


def column(of: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"column": of})


EXPECTATIONS = st.one_of(
    said("expect_column_values_to_not_be_null", column(TEXTS), MOSTLY),
    said("expect_column_values_to_be_unique", column(TEXTS), MOSTLY),
    said("expect_column_values_to_be_in_set", column(TEXTS), st.just({"value_set": ["de", "fr"]}), MOSTLY),
    said("expect_column_values_to_match_regex", column(TEXTS), st.just({"regex": "^[a-z]"}), MOSTLY),
    said("expect_column_value_lengths_to_be_between", column(TEXTS), st.just({"min_value": 1, "max_value": 9})),
    said("expect_column_values_to_be_between", column(st.sampled_from(["value.amount", "offset"])), ENDS),
    said("expect_column_mean_to_be_between", column(st.just("value.amount")), ENDS),
    said("expect_table_row_count_to_be_between", COUNTS),
    said("expect_table_row_count_to_equal", st.just({"value": 3})),
    said("expect_compound_columns_to_be_unique", st.just({"column_list": ["key", "value.order_id"]})),
)


def job(*expectations: Expectation) -> Job:
    return replace(load_job(f"{JOB_FILE}:job"), expectations={"orders": expectations})


def key_of(expectation: Expectation) -> str:
    return json.dumps([expectation.type, expectation.kwargs, expectation.severity], sort_keys=True)


@given(declared=st.lists(EXPECTATIONS, max_size=6, unique_by=key_of))
@examples(40, campaign=1000)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, declared: list[Expectation]) -> None:
    path = tmp_path_factory.mktemp("contract") / "c.yaml"
    path.write_text(exported(job(*declared), {"orders": SCHEMA}).to_yaml())
    jsonschema.validate(yaml.safe_load(path.read_text()), STANDARD)
    found = contract(path)
    assert sorted(key_of(each) for each in found if each.type != LOGICAL_TYPE) == sorted(map(key_of, declared))
    types = {each.kwargs["column"]: each.kwargs["logical_type"] for each in found if each.type == LOGICAL_TYPE}
    assert types == {
        "offset": "integer",
        "timestamp": "timestamp",
        "key": "string",
        "value": "object",
        "value.order_id": "string",
        "value.amount": "number",
        "value.country": "string",
        "headers": "array",
        "partition": "integer",
    }
    again = path.with_name("again.yaml")
    again.write_text(exported(job(*found), {"orders": SCHEMA}).to_yaml())
    assert set(map(key_of, contract(again))) == set(map(key_of, found))


def test_words_of_the_standard_come_first() -> None:
    made = yaml.safe_load(
        exported(
            job(
                expect("expect_column_values_to_not_be_null", column="value.order_id"),
                expect("expect_column_values_to_be_between", column="value.amount", min_value=0),
                expect("expect_column_values_to_not_be_null", column="key", mostly=0.99, severity="warn"),
                expect("expect_column_mean_to_be_between", column="value.amount", min_value=0),
            ),
            {"orders": SCHEMA},
        ).to_yaml()
    )
    (topic,) = made["schema"]
    value = {each["name"]: each for each in topic["properties"][3]["properties"]}
    assert value["order_id"]["required"] is True
    assert value["amount"]["logicalTypeOptions"] == {"minimum": 0}
    assert topic["properties"][2]["quality"] == [
        {"severity": "warning", "unit": "percent", "metric": "nullValues", "mustBeLessOrEqualTo": 1}
    ]
    assert [rule["engine"] for rule in topic["quality"]] == ["greatExpectations"]


def test_what_yaml_cannot_hold_is_refused() -> None:
    odd = expect("expect_column_values_to_be_between", column="value.amount", min_value=object())
    with pytest.raises(ConfigurationError, match=r"parameters that a contract cannot hold.*topic orders"):
        exported(job(odd), {"orders": SCHEMA})


def test_the_commands(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    archive_orders(settings, orders(20))
    asked = ["contract", "export", f"{JOB_FILE}:job", "--warehouse", settings.warehouse]
    of_job = CliRunner().invoke(app, asked, obj={})
    assert of_job.exit_code == 0, of_job.output
    in_json = CliRunner().invoke(app, [*asked, "--output", "json"], obj={})
    assert json.loads(in_json.output) == yaml.safe_load(of_job.output)
    file = tmp_path / "all.odcs.yaml"
    file.write_text(of_job.output + "slaProperties:\n- {property: latency, value: 1}\n")
    assert [topic.topic for topic in load_contract(file).topics] == ["orders", SINK]
    shown = CliRunner().invoke(app, ["contract", "import", str(file), "--schema", SINK], obj={})
    assert shown.exit_code == 0, shown.output
    space: dict[str, Any] = {"expect": expect}
    exec(shown.output, space)
    declared = load_job(f"{JOB_FILE}:job")
    checks = [each for each in space["expectations"][SINK] if each.type != LOGICAL_TYPE]
    assert {key_of(each) for each in checks} == {key_of(each) for each in declared.expectations[SINK]}
    assert "# not a check: slaProperties[latency]: " in shown.output
    as_json = CliRunner().invoke(app, ["contract", "import", str(file), "--output", "json"], obj={})
    assert set(json.loads(as_json.output)["expectations"]) == {"orders", SINK}
    warehouse = open_warehouse(settings)
    with_types = replace(declared, expectations={SINK: space["expectations"][SINK], "orders": contract(file, "orders")})
    assert check_expectations(with_types, warehouse) > 10
    wrong = expect(LOGICAL_TYPE, column="value.amount", logical_type="string")
    with pytest.raises(ConfigurationError, match="says that value.amount is of the type string, and it is double"):
        check_expectations(job(wrong), warehouse)
    with pytest.raises(
        ConfigurationError, match="the column value.amuont, which the topic does not have.*did you mean"
    ):
        check_expectations(job(expect(LOGICAL_TYPE, column="value.amuont", logical_type="number")), warehouse)
