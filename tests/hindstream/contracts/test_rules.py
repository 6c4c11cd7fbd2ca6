"""What rules of contracts become, and which are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hindstream.contracts.contract import contract, load_contract
from hindstream.contracts.logical_types import LOGICAL_TYPE
from hindstream.spark.expectations.checks import Check, Suite
from hindstream.spark.expectations.flat_tables import table_frame
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import expect

NOT_NULL = "expect_column_values_to_not_be_null"
UNIQUE = "expect_column_values_to_be_unique"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
ROWS = "expect_table_row_count_to_be_between"


def written(
    folder: Path, *properties: dict[str, Any], quality: list[dict[str, Any]] | None = None, **more: Any
) -> Path:
    orders = {"name": "Orders", "physicalName": "orders", "properties": list(properties), "quality": quality or []}
    whole = {"kind": "DataContract", "apiVersion": "v3.1.0", "id": "o", "version": "1", "status": "active"}
    path = folder / "orders.odcs.yaml"
    path.write_text(yaml.safe_dump({**whole, "schema": [orders], **more}))
    return path


def amount(**rule: Any) -> dict[str, Any]:
    return {"name": "amount", **rule}


def metric(name: str, **rule: Any) -> dict[str, Any]:
    return amount(quality=[{"metric": name, **rule}])


C = {"column": "value.amount"}
CASES = {
    "required": (amount(required=True), [expect(NOT_NULL, **C)]),
    "unique": (amount(unique=True), [expect(UNIQUE, **C)]),
    "key": (amount(primaryKey=True), [expect(NOT_NULL, **C), expect(UNIQUE, **C)]),
    "type": (amount(logicalType="number"), [expect(LOGICAL_TYPE, **C, logical_type="number")]),
    "enum": (amount(enum=[{"value": 1}, {"value": 2}]), [expect(IN_SET, **C, value_set=[1, 2])]),
    "nulls": (metric("nullValues", mustBe=0, severity="warning"), [expect(NOT_NULL, **C, severity="warn")]),
    "few nulls": (
        metric("nullValues", mustBeLessOrEqualTo=1, unit="percent"),
        [expect(NOT_NULL, **C, mostly=0.99)],
    ),
    "fewer nulls": (
        metric("nullValues", mustBeLessThan=1, unit="percent"),
        [expect(NOT_NULL, **C, mostly=0.9900000000000001)],
    ),
    "missing": (
        metric("missingValues", mustBe=0, arguments={"missingValues": [None, "", "N/A"]}),
        [expect(NOT_NULL, **C), expect("expect_column_values_to_not_be_in_set", **C, value_set=["", "N/A"])],
    ),
    "invalid": (
        metric("invalidValues", mustBe=0, arguments={"validValues": ["kg"], "pattern": "^k"}),
        [expect(IN_SET, **C, value_set=["kg"]), expect("expect_column_values_to_match_regex", **C, regex="^k")],
    ),
    "duplicates": (metric("duplicateValues", mustBe=0), [expect(UNIQUE, **C)]),
    "custom": (
        amount(quality=[{"type": "custom", "engine": "greatExpectations", "implementation": f"type: {NOT_NULL}"}]),
        [expect(NOT_NULL, **C)],
    ),
    "lengths": (
        amount(logicalType="string", logicalTypeOptions={"minLength": 2, "maxLength": 3, "pattern": "^a"}),
        [
            expect(LOGICAL_TYPE, **C, logical_type="string"),
            expect("expect_column_values_to_match_regex", **C, regex="^a"),
            expect("expect_column_value_lengths_to_be_between", **C, min_value=2, max_value=3),
        ],
    ),
    "bounds": (
        amount(logicalType="integer", logicalTypeOptions={"minimum": 0, "exclusiveMaximum": 9}),
        [
            expect(LOGICAL_TYPE, **C, logical_type="integer"),
            expect(BETWEEN, **C, min_value=0, max_value=9, strict_max=True),
        ],
    ),
    "nested": (
        {"name": "buyer", "logicalType": "object", "properties": [amount(required=True)]},
        [
            expect(LOGICAL_TYPE, column="value.buyer", logical_type="object"),
            expect(NOT_NULL, column="value.buyer.amount"),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_property_says(tmp_path: Path, case: str) -> None:
    said, expectations = CASES[case]
    assert contract(written(tmp_path, said)) == tuple(expectations)


@pytest.mark.parametrize(
    ("rule", "expectation"),
    [
        ({"metric": "rowCount", "mustBe": 5}, expect("expect_table_row_count_to_equal", value=5)),
        ({"metric": "rowCount", "mustBeGreaterThan": 5}, expect(ROWS, min_value=5, strict_min=True)),
        (
            {"metric": "rowCount", "mustBeBetween": [1, 9]},
            expect(ROWS, min_value=1, max_value=9, strict_min=True, strict_max=True),
        ),
        (
            {"metric": "duplicateValues", "mustBe": 0, "arguments": {"properties": ["shop", "amount"]}},
            expect("expect_compound_columns_to_be_unique", column_list=["value.shop", "value.amount"]),
        ),
        (
            {
                "type": "custom",
                "engine": "great-expectations",
                "implementation": {
                    "type": "expect_column_max_to_be_between",
                    "kwargs": {"column": "amount", "max_value": 1},
                },
            },
            expect("expect_column_max_to_be_between", column="value.amount", max_value=1),
        ),
    ],
)
def test_what_is_said_of_all(tmp_path: Path, rule: dict[str, Any], expectation: object) -> None:
    assert contract(written(tmp_path, amount(), {"name": "shop"}, quality=[rule])) == (expectation,)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rows": (metric("nullValues", mustBeLessThan=100), "not the same in each slice"),
    "not": (metric("nullValues", mustNotBe=1, unit="percent"), "say mustBeLessOrEqualTo"),
    "no operator": (metric("nullValues"), "no operator"),
    "share of two": (
        metric("invalidValues", mustBeLessOrEqualTo=1, unit="percent", arguments={"validValues": [1], "pattern": "a"}),
        "a share of a set and a pattern",
    ),
    "some duplicates": (metric("duplicateValues", mustBeLessThan=10), "only mustBe 0"),
    "some missing": (metric("missingValues", mustBeLessThan=10, arguments={"missingValues": ["x"]}), "only mustBe 0"),
    "sql": (amount(quality=[{"type": "sql", "query": "SELECT 1", "mustBe": 1}]), "SQL of its server"),
    "soda": (amount(quality=[{"type": "custom", "engine": "soda", "implementation": "x"}]), "it is for soda"),
    "severity": (metric("nullValues", mustBe=0, severity="P1"), "its severity is P1"),
    "unknown metric": (metric("freshness", mustBe=0), "none of the standard's metrics"),
    "misspelled": (metric("nullValues", mustbe=0), "knows no such key"),
    "format": (amount(logicalType="string", logicalTypeOptions={"format": "uuid"}), "no expectation says format"),
    "vector": (amount(logicalType="vector"), "no topic holds"),
    "array": (amount(logicalType="array", items={"name": "x", "required": True}), "no elements of arrays"),
    "required struct": (amount(logicalType="object", required=True), "fields of structs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_checked_is_named_and_left_out_by_name_only(tmp_path: Path, case: str) -> None:
    said, why = REFUSED[case]
    path = written(tmp_path, said)
    with pytest.raises(ConfigurationError, match=f"cannot be checked: .*{why}") as raised:
        contract(path)
    found = load_contract(path)
    places = [each.place for each in (*found.left_out, *found.topics[0].left_out)]
    assert all(place in str(raised.value.next_step) for place in places)
    contract(path, without=places)
    with pytest.raises(ConfigurationError, match="no rule other to leave out"):
        contract(path, without=["other"])


@pytest.mark.parametrize(("percent", "rows"), [(1, 100), (1, 1000), (10, 10), (30, 1000)])
def test_less_than_so_many_percent_is_exact(tmp_path: Path, percent: int, rows: int) -> None:
    from hindstream.spark.validation.validator import Validator  # noqa: PLC0415 - seconds

    (few,) = contract(written(tmp_path, metric("nullValues", mustBeLessThan=percent, unit="percent")))
    (most,) = contract(written(tmp_path, metric("nullValues", mustBeLessOrEqualTo=percent, unit="percent")))
    validator = Validator(tmp_path / "site")
    checks = [Check(each.type, {**each.kwargs, "column": "a"}, each.kwargs) for each in (few, most)]
    answers = []
    for missing in (rows * percent // 100, rows * percent // 100 - 1):
        values = [None] * missing + ["x"] * (rows - missing)
        table = pa.table({"a": pa.array(values), "partition": pa.array([0] * rows), "offset": pa.array(range(rows))})
        suite = Suite("t", checks, ("partition", "offset"))
        answers.append([check.success for check in validator.validate(suite, table_frame(table), run="1").checks])
    assert answers == [[False, True], [True, True]]


def test_text_and_times_of_delivery_are_told_and_no_rules(tmp_path: Path) -> None:
    text = amount(quality=[{"type": "text", "description": "It is right."}])
    path = written(tmp_path, text, slaProperties=[{"property": "latency", "value": 4, "unit": "d"}])
    assert contract(path) == ()
    found = load_contract(path)
    assert [each.place for each in (*found.left_out, *found.topics[0].left_out)] == [
        "slaProperties[latency]",
        "Orders.amount.quality[0]",
    ]


def test_properties_are_fields_of_values_or_columns(tmp_path: Path) -> None:
    columns = [{"name": "key", "required": True}, {"name": "timestamp", "required": True}]
    assert contract(written(tmp_path, *columns)) == (
        expect(NOT_NULL, column="key"),
        expect(NOT_NULL, column="timestamp"),
    )
    of_key = contract(written(tmp_path, amount(required=True)), at="key")
    assert of_key == (expect(NOT_NULL, column="key.amount"),)


def test_a_key_of_several_properties(tmp_path: Path) -> None:
    keys = [
        {"name": "b", "primaryKey": True, "primaryKeyPosition": 2},
        {"name": "a", "primaryKey": True, "primaryKeyPosition": 1},
    ]
    assert contract(written(tmp_path, *keys))[-1] == expect(
        "expect_compound_columns_to_be_unique", column_list=["value.a", "value.b"]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [", "no YAML"),
        ("kind: Other", "kind is not DataContract"),
        ("kind: DataContract\napiVersion: v2.2.2", "of version v2.2.2"),
        ("kind: DataContract\napiVersion: v3.0.0\nnonsense: 1", "no data contract: .*nonsense"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_contract(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "c.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        contract(path)
    assert raised.value.next_step


def test_without_the_model_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_data_contract_standard.model", None)
    with pytest.raises(ConfigurationError, match=r"not installed.*pip install 'hindstream\[contracts\]'"):
        contract(written(tmp_path, amount()))


def test_one_object_of_several_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, amount())
    raw = yaml.safe_load(path.read_text())
    raw["schema"].append({"name": "Returns", "properties": [amount(unique=True)]})
    path.write_text(yaml.safe_dump(raw))
    assert contract(path, "Returns") == (expect(UNIQUE, **C),)
    assert contract(path, "orders") == ()
    with pytest.raises(ConfigurationError, match=r"2 objects.*Orders, orders, Returns"):
        contract(path)
    with pytest.raises(ConfigurationError, match=r"no object Return .*did you mean Returns"):
        contract(path, "Return")


def test_a_path_begins_at_the_file_that_names_it(tmp_path: Path) -> None:
    written(tmp_path, amount(required=True))
    file = tmp_path / "job.py"
    space: dict[str, Any] = {"__file__": str(file)}
    exec("from hindstream import contract\nfound = contract('orders.odcs.yaml')", space)
    assert space["found"] == (expect(NOT_NULL, **C),)
