"""A comparison finds what a comparison in plain Python finds, however little memory it has."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.comparison.compare import compare
from statelib.comparison.fields import Rules, SchemaDifference
from statelib.comparison.matches import Resources
from statelib.comparison.times import ALL_TIMES, Interval
from tests.comparison import tables
from tests.comparison.tables import KEYS, VALUE, brute_latest, brute_order, brute_set, mutated, plain, rows_of, side
from tests.effort import examples

MANY = 10_000


def run(a, b, way, *, rules=Rules(), within=ALL_TIMES, **resources):  # noqa: B008 - frozen
    with tempfile.TemporaryDirectory() as folder:
        found = compare(a, b, way, Resources(Path(folder), **resources), rules=rules, examples=MANY, within=within)
        assert not list(Path(folder).iterdir())
    return found


def key_of(example):
    """As `plain` makes it of a row: windows as milliseconds."""
    key = example.key
    if isinstance(key, dict):
        key = {name: inner if name == "key" else round(inner.timestamp() * 1000) for name, inner in key.items()}
    return plain(key)


def _time_ms(example):
    is_windowed = isinstance(example.key, dict)
    time = example.key["window_start"] if is_windowed else (example.a or example.b)["timestamp"]
    return round(time.timestamp() * 1000)


def check(found, brute):
    assert (found.equal, found.only_a, found.only_b, found.changed) == (
        brute.equal, len(brute.only_a), len(brute.only_b), len(brute.changed),
    )  # fmt: skip
    for kind in ("only_a", "only_b", "changed"):
        assert Counter(map(key_of, found.examples[kind])) == Counter(getattr(brute, kind))
    if brute.fields is not None:
        assert {field.path: field.changed for field in found.fields} == dict(brute.fields)
        assert Counter(name for example in found.examples["changed"] for name in example.fields) == brute.fields
    assert found.is_empty == (not found.only_a and not found.only_b and not found.changed)
    shown = [example for kind in ("changed", "only_a", "only_b") for example in found.examples[kind]]
    times = [_time_ms(example) for example in shown]
    assert found.first_ms == min(times, default=None)
    of_that_time = [repr(example) for example, time in zip(shown, times, strict=True) if time == found.first_ms]
    assert repr(found.first) in of_that_time or not shown  # NaN is not NaN
    if found.times is not None:
        counted = [sum(getattr(found.times, kind)) for kind in ("only_a", "only_b", "changed")]
        assert counted == [found.only_a, found.only_b, found.changed]


@st.composite
def histories(draw):
    """A type of keys, rows that both sides share, and those of each."""
    type_, keys = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    shared = draw(rows_of(keys, 5))
    a = draw(rows_of(keys))
    return type_, shared, a, draw(mutated(a)) + draw(rows_of(keys, 2))


RESOURCES = st.fixed_dictionaries(
    {"budget_bytes": st.sampled_from([1, 300, 2**20]), "rows_a_bucket": st.sampled_from([1, 2, 1000])}
)


@given(histories(), RESOURCES, st.integers(1, 3))
@examples(12, 3000)
def test_the_newest_rows_by_key(history, resources, partitions):
    key, shared, a, b = history
    sides = [side(shared, own, (key, VALUE), partitions) for own in (a, b)]
    check(run(*sides, "latest", **resources), brute_latest(shared, a, b))


@given(histories(), RESOURCES, st.integers(1, 3), st.integers(1, 3))
@examples(12, 3000)
def test_records_as_a_multiset(history, resources, partitions_a, partitions_b):
    key, _, a, b = history
    sides = side([], a, (key, VALUE), partitions_a), side([], b, (key, VALUE), partitions_b)
    check(run(*sides, "set", **resources), brute_set(a, b))


@given(histories(), st.integers(1, 5), st.integers(1, 5))
@examples(12, 2000)
def test_records_in_order(history, batch_a, batch_b):
    key, _, a, b = history
    sides = side([], a, (key, VALUE), batch_rows=batch_a), side([], b, (key, VALUE), batch_rows=batch_b)
    check(run(*sides, "order"), brute_order(a, b))


@given(histories(), st.sampled_from(["latest", "set", "order"]), RESOURCES, st.integers(1, 4), st.integers(1, 4))
@examples(12, 2000)
def test_nothing_depends_on_memory_buckets_and_partitions(history, way, resources, partitions, batch_rows):
    key, shared, a, b = history
    shared = [] if way == "set" else shared
    whole = run(*(side(shared, own, (key, VALUE)) for own in (a, b)), way)
    partitions = 1 if way == "order" else partitions
    parts = run(*(side(shared, own, (key, VALUE), partitions, batch_rows) for own in (a, b)), way, **resources)
    assert repr(tables.without_places(parts)) == repr(tables.without_places(whole))  # NaN is not NaN


@given(histories(), st.sampled_from(["latest", "set", "order"]))
@examples(12)
def test_a_side_is_the_same_as_itself(history, way):
    key, shared, a, _ = history
    found = run(*(side(shared, a, (key, VALUE), partitions) for partitions in (1, 1 if way == "order" else 2)), way)
    assert found.is_empty
    assert found.times is None
    assert not found.fields


@given(
    histories(), st.sampled_from([0.0, 1e-9, 0.6, 1e6]), st.sampled_from(["", "timestamp", "value.inner", "headers"])
)
@examples(12, 1000)
def test_tolerances_and_fields_that_are_left_out(history, tolerance, ignored):
    key, shared, a, b = history
    ignored = frozenset(filter(None, [ignored]))
    found = run(*(side(shared, own, (key, VALUE)) for own in (a, b)), "latest", rules=Rules(tolerance, ignored=ignored))
    check(found, brute_latest(shared, a, b, tolerance=tolerance, ignored=ignored))


BOUNDS = st.none() | st.sampled_from([0, 1, 5_000, 3_600_000, 90_000_000])


@given(histories(), st.sampled_from(["latest", "set", "order"]), BOUNDS, BOUNDS, RESOURCES, st.integers(1, 3))
@examples(30, 3000)
def test_rows_of_some_time(history, way, since_ms, until_ms, resources, partitions):
    key, shared, a, b = history
    shared, partitions = (shared, partitions) if way == "latest" else ([], 1 if way == "order" else partitions)
    sides = [side(shared, own, (key, VALUE), partitions) for own in (a, b)]
    found = run(*sides, way, within=Interval(since_ms, until_ms), **resources)
    shared, a, b = (tables.within(rows, since_ms, until_ms) for rows in (shared, a, b))
    if way == "latest":
        check(found, brute_latest(shared, a, b))
    else:
        check(found, {"set": brute_set, "order": brute_order}[way](a, b))


def test_the_difference_of_numbers_is_told_exactly():
    key = pa.string()
    value = pa.struct([("n", pa.int64()), ("x", pa.float64())])
    rows = [(f"k{n:03}", {"n": n, "x": float(n)}, n, None) for n in range(200)]
    changed = [
        (k, {"n": v["n"] + i % 3, "x": v["x"] + (1e16 if i == 7 else 0)}, t, h) for i, (k, v, t, h) in enumerate(rows)
    ]
    found = run(side([], rows, (key, value), 3), side([], changed, (key, value), 2), "latest")
    by_path = {field.path: field for field in found.fields}
    assert list(by_path) == ["value.n", "value.x"]
    n = by_path["value.n"]
    assert (n.changed, n.numbers.count, n.numbers.min, n.numbers.max, n.numbers.sum) == (133, 133, 1, 2, 199)
    assert n.numbers.quantiles["0.5"] == 1
    assert by_path["value.x"].numbers.sum == 1e16
    assert [example.key for example in found.examples["changed"]][:3] == ["k001", "k002", "k004"]
    assert found.examples["changed"][0].a["value"] == {"n": 1, "x": 1.0}


@pytest.mark.parametrize(("n", "by"), [(2**62, 1), (2**63 - 2, 1), (-(2**63), 3)])
def test_large_integers_are_subtracted_exactly(n, by):
    types = (pa.string(), pa.int64())
    sides = [side([], [("k", value, 0, None)], types) for value in (n, n + by)]
    assert run(*sides, "latest", rules=Rules(by - 0.5)).changed == 1
    assert run(*sides, "latest", rules=Rules(by)).is_empty
    (field,) = run(*sides, "latest").fields
    assert field.numbers.sum == by


def test_a_difference_beyond_64_bits_is_one():
    types = (pa.string(), pa.int64())
    found = run(*(side([], [("k", value, 0, None)], types) for value in (-(2**63), 2**63 - 1)), "latest")
    assert found.fields[0].numbers.sum == 2.0**64


def test_other_types_are_said_and_compared_where_they_can_be():
    old = pa.struct([("n", pa.int64()), ("gone", pa.string()), ("text", pa.string())])
    new = pa.struct([("n", pa.float64()), ("come", pa.bool_()), ("text", pa.int64())])
    a = side([], [("k", {"n": 1, "gone": "x", "text": "1"}, 0, None), ("l", {"n": 2}, 0, None)], (pa.string(), old))
    b = side([], [("k", {"n": 1.0, "come": True, "text": 1}, 0, None), ("l", {"n": 2.5}, 0, None)], (pa.string(), new))
    found = run(a, b, "latest")
    assert found.schema == (
        SchemaDifference("value.n", "int64", "double", is_compared=True),
        SchemaDifference("value.gone", "string", None, is_compared=False),
        SchemaDifference("value.text", "string", "int64", is_compared=False),
        SchemaDifference("value.come", None, "bool", is_compared=False),
    )
    assert (found.equal, found.changed) == (1, 1)
    assert found.examples["changed"][0].fields == ("value.n",)
    other_keys = replace(b, key=pa.bool_())
    assert not run(a, other_keys, "latest").is_compared


@pytest.mark.parametrize(("a", "b", "differs"), [(0.0, -0.0, True), (float("nan"), -float("nan"), False)])
def test_zeros_have_a_sign_and_nan_is_nan(a, b, differs):
    types = (pa.string(), pa.list_(pa.float64()))
    found = run(*(side([], [("k", [x], 0, None)], types) for x in (a, b)), "set")
    assert found.is_empty is not differs
