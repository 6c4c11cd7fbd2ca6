"""Values that change while a topic grows: what goes together, and what is read of files of before and after."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.reader import PartitionReader
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.schema_changes import DoesNotFitError, changes, read_as, united

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

OLD = pa.struct([("a", pa.int32()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (pa.struct([("b", pa.string()), ("a", pa.int32())]), OLD),
        (pa.struct([("a", pa.int32())]), OLD),
        (pa.struct([("c", pa.bool_()), ("a", pa.int8())]), pa.struct([*OLD, ("c", pa.bool_())])),
        (pa.struct([("a", pa.int64()), ("b", pa.null())]), pa.struct([("a", pa.int64()), ("b", pa.string())])),
        (pa.null(), OLD),
    ],
)
def test_values_that_go_together(new: pa.DataType, expected: pa.DataType) -> None:
    assert united(OLD, new).equals(expected)


D = pa.decimal128


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int16(), pa.float32(), pa.float32()),
        (pa.int32(), pa.float32(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (D(5, 2), D(9, 2), D(9, 2)),
        (D(5, 2), D(7, 4), D(7, 4)),
        (D(9, 2), D(7, 4), D(11, 4)),
        (D(38, 2), D(10, 4), None),
        (pa.int32(), D(5, 2), D(12, 2)),
        (pa.int64(), D(20, 2), D(21, 2)),
        (pa.int64(), D(38, 20), None),
        (D(5, 2), pa.float64(), None),
        (pa.string(), D(5, 2), None),
        (pa.date32(), pa.timestamp("us"), None),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
    ],
)
def test_numbers_become_as_wide_as_loses_nothing(
    one: pa.DataType, other: pa.DataType, both: pa.DataType | None
) -> None:
    for old, new in ((one, other), (other, one)):
        if both is None:
            with pytest.raises(ConfigurationError, match=r"value\.n is .*, not .*\(field value\.n\)"):
                united(pa.struct([("n", old)]), pa.struct([("n", new)]))
        else:
            assert united(old, new).equals(both)


EXTREMES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 127, None],
    pa.int16(): [-(1 << 15), (1 << 15) - 1],
    pa.int32(): [-(1 << 31), (1 << 31) - 1],
    pa.int64(): [-(1 << 63), (1 << 63) - 1],
    pa.float32(): [0.5, -0.0, float("inf")],
    pa.float64(): [0.1, 1e300],
    D(5, 2): [Decimal("-999.99"), Decimal("0.01")],
    D(7, 4): [Decimal("999.9999")],
}


def _go_together(old: pa.DataType, new: pa.DataType) -> bool:
    try:
        united(old, new)
    except ConfigurationError:
        return False
    return True


TOGETHER = [(old, new) for old in EXTREMES for new in EXTREMES if old != new and _go_together(old, new)]


@pytest.mark.parametrize(("old", "new"), TOGETHER, ids=str)
def test_what_was_written_before_and_after_is_read_as_it_is(tmp_path: Path, old: pa.DataType, new: pa.DataType) -> None:
    written = []
    for n, of in enumerate((old, new, old)):
        schema = topic_schema(pa.string(), pa.struct([("n", of)]))
        archive = TopicArchive.ensure(str(tmp_path / "t"), schema, 1)
        values = pa.StructArray.from_arrays([pa.array(EXTREMES[of], of)], ["n"])
        times = pa.array([n] * len(values), pa.timestamp("ms", "UTC"))
        table = pa.table({"key": pa.nulls(len(values), pa.string()), "value": values, "timestamp": times})
        append_records(archive, table, attempt=f"a{n}", app_id=f"a{n}", app_version=1)
        written += EXTREMES[of]
    found = TopicArchive.open(str(tmp_path / "t")).reader(0).read_all()
    assert [row["n"] for row in found["value"].to_pylist()] == written
    others = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().sort_by("offset")
    assert [row["n"] for row in others["value"].to_pylist()] == written, "for delta-rs too"


def test_fields_within_structs_lists_and_maps() -> None:
    def nested(inner: pa.DataType) -> pa.DataType:
        return pa.struct([("s", pa.struct([("l", pa.list_(inner))])), ("m", pa.map_(pa.string(), inner))])

    wide = pa.struct([*OLD, ("c", pa.float64())])
    narrow = pa.struct([("c", pa.float32())])
    assert united(nested(united(OLD, narrow)), nested(wide)).equals(nested(wide))
    more = pa.struct([("a", pa.int64()), ("b", pa.string())])
    assert list(changes(nested(OLD), nested(more))) == [
        "value.s.l[].a was int32 and is int64",
        "value.m[].a was int32 and is int64",
    ]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (pa.struct([("a", pa.string())]), r"the topic archive's value.a is int32, not string"),
        (pa.struct([("a", pa.bool_())]), "value.a is int32, not bool"),
        (pa.struct([("b", pa.struct([("x", pa.int32())]))]), "value.b is string, not struct"),
        (pa.int64(), "value is struct"),
    ],
)
def test_values_that_do_not_go_together(new: pa.DataType, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        united(OLD, new)


@pytest.mark.parametrize(
    ("values", "wanted", "row"),
    [
        (pa.array([1, None, 1 << 31]), pa.int32(), 2),
        (pa.array([0.5, float("nan"), 0.1]), pa.float32(), 2),
        (pa.array([Decimal("1.5"), Decimal("100.5")], pa.decimal128(10, 1)), pa.decimal128(3, 1), 1),
    ],
)
def test_a_number_that_does_not_fit_is_told_by_its_row(values: pa.Array, wanted: pa.DataType, row: int) -> None:
    with pytest.raises(DoesNotFitError, match=r"value.n is .*, which is no") as raised:
        read_as(pa.StructArray.from_arrays([values], ["n"]), pa.struct([("n", wanted)]))
    assert raised.value.row == row
    kept = read_as(values.slice(0, row), wanted)
    assert kept.type == wanted
    assert str(kept.to_pylist()) == str(values.slice(0, row).to_pylist())


_NUMBERS = st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1))
_INNER = st.fixed_dictionaries({"x": _NUMBERS, "y": st.one_of(st.none(), st.text(max_size=3))})
_VALUES = st.lists(
    st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {
                "n": _NUMBERS,
                "s": st.one_of(st.none(), _INNER),
                "l": st.one_of(st.none(), st.lists(st.one_of(st.none(), _INNER), max_size=3)),
                "m": st.one_of(
                    st.none(), st.dictionaries(st.text(max_size=2), st.one_of(st.none(), _INNER), max_size=3)
                ),
            }
        ),
    ),
    max_size=8,
)


def _type(number: pa.DataType, *more: tuple[str, pa.DataType], reverse: bool = False) -> pa.DataType:
    inner = pa.struct([("x", number), ("y", pa.string()), *more])
    fields = [("n", number), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)), *more]
    return pa.struct(fields[::-1] if reverse else fields)


def _plain(value: Any) -> Any:
    """Python data without the fields ``z``, which are null; maps, which Arrow gives as pairs, as dicts."""
    if isinstance(value, dict):
        assert value.get("z") is None
        return {name: _plain(inner) for name, inner in value.items() if name != "z"}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@given(_VALUES, st.integers(0, 3), st.booleans())
def test_what_is_read_as_another_type_is_what_it_was(values: list[Any], begin: int, reverse: bool) -> None:
    narrow, wide = _type(pa.int32()), _type(pa.int64(), ("z", pa.bool_()), reverse=reverse)
    expected = [_plain(value) for value in pa.array(values, narrow).to_pylist()][begin:]
    widened = read_as(pa.array(values, narrow).slice(begin), wide)
    widened.validate(full=True)
    assert widened.type == wide
    assert [_plain(value) for value in widened.to_pylist()] == expected
    back = read_as(widened, narrow)
    back.validate(full=True)
    assert [_plain(value) for value in back.to_pylist()] == expected


def _archive(folder: Path, value: pa.DataType) -> TopicArchive:
    return TopicArchive.ensure(str(folder / "t"), topic_schema(pa.string(), value), 1)


def _add(archive: TopicArchive, number: int, values: list[Any], value: pa.DataType | None = None) -> None:
    table = pa.table({
        "key": pa.array(["k"] * len(values)),
        "value": pa.array(values, value or archive.table_schema.field("value").type),
        "timestamp": pa.array(range(len(values)), pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    append_records(archive, table, attempt=f"a{number}", app_id="test", app_version=number)


def test_a_topic_gets_what_new_values_need(tmp_path: Path) -> None:
    first = _archive(tmp_path, OLD)
    _add(first, 1, [{"a": 1, "b": "x"}, None])
    wide = pa.struct([("c", pa.struct([("d", pa.int32())])), ("b", pa.string()), ("a", pa.int64())])
    second = _archive(tmp_path, wide)
    assert second.table_schema.field("value").type == united(OLD, wide)
    _add(second, 2, [{"a": 1 << 40, "b": None, "c": {"d": 5}}])
    _add(second, 3, [{"a": 7}], pa.struct([("a", pa.int32())]))
    newest = second.refresh()
    assert newest.reader(0).read_all()["value"].to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        None,
        {"a": 1 << 40, "b": None, "c": {"d": 5}},
        {"a": 7, "b": None, "c": None},
    ]
    for columns in (["value.a"], ["value.c"], ["value.c", "value.b"]):
        found = newest.reader(0, columns=columns).read_all()["value"].to_pylist()
        assert [value is None for value in found] == [False, True, False, False], columns
    assert found[2] == {"c": {"d": 5}, "b": None} or found[2] == {"b": None, "c": {"d": 5}}
    assert _archive(tmp_path, OLD).version == newest.version, "nothing to change"


def test_a_changed_topic_is_refused_by_a_release_that_does_not_know_it(tmp_path: Path, monkeypatch: Any) -> None:
    _archive(tmp_path, OLD)
    _archive(tmp_path, pa.struct([*OLD, ("c", pa.bool_())]))
    monkeypatch.setattr("statelib.topics.version.FORMAT_VERSION", 1)
    with pytest.raises(ConfigurationError, match="the topic archive has format 2, this Hindstream knows up to 1"):
        TopicArchive.open(str(tmp_path / "t"))


def test_a_topic_is_read_as_it_was(tmp_path: Path) -> None:
    first = _archive(tmp_path, OLD)
    _add(first, 1, [{"a": 1, "b": "x"}])
    _add(_archive(tmp_path, pa.struct([("a", pa.int64()), ("c", pa.bool_())])), 2, [{"a": 2, "b": "y", "c": True}])
    as_before = first.refresh().reading_as(first.schema_json)
    expected = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert as_before.reader(0).read_all()["value"].type == OLD
    assert as_before.reader(0).read_all()["value"].to_pylist() == expected
    _add(
        first,
        3,
        [{"a": 3, "b": "z", "c": None}, {"a": 1 << 40, "b": "z", "c": None}],
        first.refresh().schema.field("value").type,
    )
    with pytest.raises(
        InputError, match=r"value.a is 1099511627776, which is no int32 \(topic t, partition 0, offset 3"
    ):
        first.refresh().reading_as(first.schema_json).reader(0).read_all()


def test_a_file_of_other_columns_is_still_refused(tmp_path: Path) -> None:
    archive = _archive(tmp_path, pa.struct([("a", pa.int32())]))
    _add(archive, 1, [{"a": 1}])
    archive = archive.refresh()
    other = topic_schema(pa.string(), pa.struct([("b", pa.int32())]))
    with pytest.raises(InputError, match="has other columns than the topic"):
        PartitionReader(archive.storage, archive.files(0), other, topic="t", partition=0).read_all()


def test_a_field_that_the_topic_has_no_place_for_is_not_left_out(tmp_path: Path) -> None:
    archive = _archive(tmp_path, OLD)
    more = pa.struct([*OLD, ("c", pa.bool_())])
    with pytest.raises(ConfigurationError, match=r"the topic archive has no place for value.c"):
        _add(archive, 1, [{"a": 1, "b": "x", "c": True}], more)


def test_keys_stay_as_they_are(tmp_path: Path) -> None:
    archive = _archive(tmp_path, OLD)
    with pytest.raises(ConfigurationError, match="column key is string, not int64"):
        archive.widen(topic_schema(pa.int64(), OLD), 1)


@pytest.mark.parametrize(
    "clock", [pa.timestamp("us"), pa.list_(pa.timestamp("us")), pa.struct([("t", pa.timestamp("us"))])]
)
def test_times_without_a_zone_may_come_later(tmp_path: Path, clock: pa.DataType) -> None:
    """Delta's readers refuse a table that has such a column and does not say so in its protocol."""
    archive = _archive(tmp_path, OLD)
    _add(archive, 1, [{"a": 1, "b": "x"}], OLD)
    more = pa.struct([*OLD, ("c", clock)])
    widened = TopicArchive.open(archive.uri).widen(topic_schema(pa.string(), more), 1)
    assert "timestampNtz" in DeltaTable(archive.uri).protocol().writer_features
    assert widened.widen(topic_schema(pa.string(), more), 1).version == widened.version
    _add(widened, 2, [{"a": 2, "b": "y", "c": None}], more)
    values = pa.concat_tables(pa.Table.from_batches([batch]) for batch in TopicArchive.open(archive.uri).reader(0))
    assert values["value"].to_pylist() == [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "y", "c": None}]


def test_a_topic_without_records_can_be_given_other_types(tmp_path: Path) -> None:
    archive = _archive(tmp_path, OLD)
    other = topic_schema(pa.int64(), pa.struct([("c", pa.timestamp("us"))]))
    retyped = archive.retype(other)
    assert TopicArchive.open(archive.uri).schema == other
    assert retyped.retype(other).version == retyped.version
    filled = TopicArchive.create(str(tmp_path / "filled"), topic_schema(pa.string(), OLD), 1)
    _add(filled, 1, [{"a": 1, "b": "x"}], OLD)
    with pytest.raises(ConfigurationError, match="the topic has records"):
        filled.refresh().retype(other)
