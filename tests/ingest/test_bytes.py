"""Keys and values that are bytes in the files: by serdes, by a schema registry, in every place where they occur."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.ingest.formats import separated_bytes
from statelib.job.lake_topic import LakeTopic
from statelib.serdes import StringSerde
from statelib.serdes.avro.serde import AvroSerde
from statelib.serdes.schema_source import RegisteredSchema
from statelib.topics.partitioner import partition_for
from tests.ingest.debezium import KEY_SCHEMA, REGISTRY, VALUE_SCHEMA, Event, as_records, events, told
from tests.ingest.lake import load, records_of, write_file
from tests.serdes.registry import Schemas, avro

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.thorough

AT = 1_356_998_400_000


def in_kcat(data: bytes | None) -> bytes:
    """A string as ``yajl_string_encode`` writes it: control characters are escaped, all other bytes as they are."""
    if data is None:
        return b"null"
    escapes = {10: b"\\n", 13: b"\\r", 9: b"\\t", 12: b"\\f", 8: b"\\b", 34: b'\\"', 92: b"\\\\"}
    return b'"%b"' % b"".join(escapes.get(byte) or (b"\\u%04X" % byte if byte < 32 else bytes([byte])) for byte in data)


def of_kcat(folder: Path, changes: list[Event]) -> LakeTopic:
    head = b'{"topic":"t","partition":0,"offset":%d,"tstype":"create","ts":%d,"broker":1,"key":%b,"payload":%b}\n'
    folder.mkdir()
    lines = [head % (e.offset, e.time_ms, in_kcat(e.key), in_kcat(e.value)) for e in changes]
    (folder / "dump.json").write_bytes(b"".join(lines))
    return LakeTopic("t", str(folder), envelope="debezium", registry=REGISTRY)


def of_aiven(folder: Path, changes: list[Event]) -> LakeTopic:
    rows = [
        {"key": in_base64(e.key), "value": in_base64(e.value), "offset": e.offset, "timestamp": e.time_ms}
        for e in changes
    ]
    write_file(folder / "t-0-0.jsonl", rows)
    return LakeTopic("t", str(folder), envelope="debezium", registry=REGISTRY)


def in_base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def of_aiven_parquet(folder: Path, changes: list[Event]) -> LakeTopic:
    rows = [{"key": e.key, "value": e.value, "offset": e.offset, "timestamp": e.time_ms} for e in changes]
    write_file(folder / "t-0-0.parquet", rows)
    return LakeTopic(
        "t", str(folder), envelope="debezium", key_serde="registry", value_serde="registry", registry=REGISTRY
    )


@pytest.mark.parametrize("write", [of_kcat, of_aiven, of_aiven_parquet])
def test_changes_of_a_database_in_avro(tmp_path: Path, write: Callable[[Path, list[Event]], LakeTopic]) -> None:
    changes = events()
    done = load(write(tmp_path / "lake", changes), tmp_path / "w", "quarantine")
    assert done.bad_rows == 1
    assert told(records_of(tmp_path / "w", "t")) == as_records(changes)


def test_changes_of_a_database_in_files_of_bytes(tmp_path: Path) -> None:
    """Connect's ByteArrayFormat: values hold line breaks, and so do keys whose schema's id has one in it."""
    registry = Schemas((avro(10, KEY_SCHEMA), avro(2, VALUE_SCHEMA)))
    changes = [event for event in events() if event.value is not None and event.key is not None]
    with_10 = [b"\0\0\0\0\x0a" + (event.key or b"")[5:] for event in changes]
    base = tmp_path / "topics/t/partition=0/t+0+0000000000"
    base.parent.mkdir(parents=True)
    values = b"".join(b"%b\n" % (event.value or b"") for event in changes)
    assert values.count(b"\n") > len(changes)
    base.with_suffix(".bin").write_bytes(values)
    base.with_suffix(".keys.bin").write_bytes(b"".join(b"%b\n" % key for key in with_10))
    load(LakeTopic("t", str(tmp_path / "topics"), envelope="debezium", registry=registry), tmp_path / "w")
    found = [(key, at_ms, value) for _, key, at_ms, value in told(records_of(tmp_path / "w", "t"))]
    assert found == [(key, at_ms, value) for _, key, at_ms, value in as_records(changes)]


def test_changes_of_a_database_in_a_column(tmp_path: Path) -> None:
    changes = [event for event in events() if event.value is not None]
    table = pa.table({"seen": [e.time_ms for e in changes], "payload": [e.value for e in changes]})
    (tmp_path / "lake").mkdir()
    pq.write_table(table, tmp_path / "lake/changes.parquet")
    options: dict[str, Any] = {"value": "payload", "value_serde": "registry", "registry": REGISTRY, "partitions": 1}
    topic = LakeTopic("t", str(tmp_path / "lake"), key="id", envelope="debezium", order="arrival", **options)
    load(topic, tmp_path / "w", "quarantine")
    found = [(key, at_ms, value) for _, key, at_ms, value in told(records_of(tmp_path / "w", "t"))]
    assert found == [(key["id"], at_ms, value) for _, key, at_ms, value in as_records(changes)]
    topic = LakeTopic("u", str(tmp_path / "lake"), key="payload.op", timestamp="payload.source.ts_ms", **options)
    load(topic, tmp_path / "w")
    assert {r["key"] for r in records_of(tmp_path / "w", "u")} == {"c", "r", "u", "d", "t"}
    assert records_of(tmp_path / "w", "u")[0]["value"]["source"]["connector"] == "postgresql"


def test_changes_of_a_database_in_containers_of_avro(tmp_path: Path) -> None:
    """Connect's AvroFormat: the same schemas as records of their own, keys beside them, tombstones in keys alone."""
    changes = [event for event in events() if event.key is not None]
    gone = next(n for n, event in enumerate(changes) if event.value is None)
    for part in (changes[:gone], changes[gone + 1 :]):
        base = f"t+0+{part[0].offset:010}"
        container(tmp_path / f"topics/t/partition=0/{base}.avro", VALUE_SCHEMA, [e.change for e in part])
        container(tmp_path / f"topics/t/partition=0/{base}.keys.avro", KEY_SCHEMA, [e.row_key for e in part])
    tombstone = tmp_path / f"topics/t/tombstone/t+0+{changes[gone].offset:010}.keys.avro"
    container(tombstone, KEY_SCHEMA, [changes[gone].row_key])
    load(LakeTopic("t", str(tmp_path / "topics"), envelope="debezium"), tmp_path / "w")
    wanted = as_records(changes)
    before = wanted[gone - 1]
    wanted[gone] = (*wanted[gone][:2], before[2], None)  # the files have no timestamp of it
    assert told(records_of(tmp_path / "w", "t")) == wanted


def container(path: Path, schema: str, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        fastavro.writer(out, json.loads(schema), rows)


OLD = '{"type": "record", "name": "v", "fields": [{"name": "n", "type": "int"}, {"name": "old", "type": "string"}]}'
NEW = '{"type": "record", "name": "v", "fields": [{"name": "n", "type": "long"}, {"name": "new", "type": "double"}]}'
TEXT = '{"type": "record", "name": "v", "fields": [{"name": "n", "type": "string"}]}'


def aiven(folder: Path, values: list[Any], first: int = 0) -> Path:
    rows = [{"value": value, "offset": first + n, "timestamp": AT + n} for n, value in enumerate(values)]
    return write_file(folder / f"topics/t-0-{first}.jsonl", rows)


def in_wire_format(schema_id: int, schema: str, row: dict[str, Any]) -> str:
    written = AvroSerde(schema).serialize(pa.array([row], AvroSerde(schema).arrow_type))[0].as_py()
    return base64.b64encode(b"\0" + struct.pack(">i", schema_id) + written).decode()


def test_values_of_several_schemas_become_one_type(tmp_path: Path) -> None:
    """As fields of files do: by their names, and wider numbers win."""
    registry = Schemas((avro(1, OLD), avro(2, NEW), avro(3, TEXT), (4, RegisteredSchema("PROTOBUF", "..."))))
    old = in_wire_format(1, OLD, {"n": 1, "old": "a"})
    new = in_wire_format(2, NEW, {"n": 1 << 40, "new": 0.5})
    aiven(tmp_path, [old, new, None, old])
    topic = LakeTopic("t", str(tmp_path / "topics"), value_serde="registry", registry=registry)
    load(topic, tmp_path / "w")
    aiven(tmp_path, [new], first=4)
    load(topic, tmp_path / "w")
    assert [r["value"] for r in records_of(tmp_path / "w", "t")] == [
        {"n": 1, "old": "a", "new": None}, {"n": 1 << 40, "old": None, "new": 0.5}, None,
        {"n": 1, "old": "a", "new": None}, {"n": 1 << 40, "old": None, "new": 0.5},
    ]  # fmt: skip
    path = aiven(tmp_path, [in_wire_format(3, TEXT, {"n": "x"})], first=5)
    with pytest.raises(ConfigurationError, match=r"value\.n"):
        load(topic, tmp_path / "w")
    path.unlink()
    wrong = [
        in_base64(b"\0\0\0\0\x07x"),
        in_base64(b"\0"),
        "%",
        in_base64(b"\0\0\0\0\x01\x02"),
        in_base64(b"\0\0\0\0\x04"),
    ]
    aiven(tmp_path, wrong, first=6)
    done = load(topic, tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (0, 5)
    assert [r["value"]["reason"] for r in records_of(tmp_path / "w", "t-quarantine")] == [
        "value: schema 7: the registry has none with this id",
        "value: no schema id: less than 5 bytes",
        "value: it is no base64",
        "value: truncated at byte 1",
        "value: schema 4: it is PROTOBUF: declare a LakeTopic with a serde for it (value_serde, key_serde)",
    ]


def test_a_registry_that_does_not_answer(tmp_path: Path) -> None:
    aiven(tmp_path, [in_wire_format(1, OLD, {"n": 1, "old": "a"})])
    with pytest.raises(RetryableError):
        load(LakeTopic("t", str(tmp_path / "topics"), registry=Schemas(is_down=True)), tmp_path / "w")


def test_values_with_a_json_schema(tmp_path: Path) -> None:
    registry = Schemas(((5, RegisteredSchema("JSON", "{}")),))
    aiven(tmp_path, [in_base64(b'\0\0\0\0\x05{"n": 1, "deep": {"x": [1, null]}}')])
    load(LakeTopic("t", str(tmp_path / "topics"), registry=registry), tmp_path / "w")
    assert records_of(tmp_path / "w", "t")[0]["value"] == {"n": 1, "deep": {"x": [1, None]}}


@pytest.mark.parametrize(
    ("serde", "data", "value"),
    [
        ("string", b'{"a": 1}', '{"a": 1}'),
        ("json", b'{"a": 1}', {"a": 1}),
        ("int64", struct.pack(">q", 1 << 40), 1 << 40),
        ("double", struct.pack(">d", 0.5), 0.5),
        ("binary", b"\xff", b"\xff"),
        (AvroSerde(OLD), b"\x02\x02a", {"n": 1, "old": "a"}),
    ],
)
def test_serdes_and_their_names(tmp_path: Path, serde: Any, data: bytes, value: Any) -> None:
    aiven(tmp_path, [in_base64(data)])
    load(LakeTopic("t", str(tmp_path / "topics"), value_serde=serde), tmp_path / "w")
    found = records_of(tmp_path / "w", "t")[0]["value"]
    assert (found if isinstance(value, dict) else found["value"]) == value


def test_a_serde_of_a_file_of_python(tmp_path: Path) -> None:
    (tmp_path / "serdes.py").write_text(
        "import pyarrow as pa\nfrom hindstream import serde_for\nn = serde_for(pa.int32())\n"
    )
    aiven(tmp_path, [in_base64(b"\0\0\0\x05")])
    load(LakeTopic("t", str(tmp_path / "topics"), value_serde=f"{tmp_path}/serdes.py:n"), tmp_path / "w")
    assert records_of(tmp_path / "w", "t")[0]["value"] == {"value": 5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_serde": "avro"}, "there is no such serde"),
        ({"value_serde": "registry"}, "not said which schema registry"),
        ({"layout": "files", "value_serde": "json", "timestamp": "timestamp"}, "which field has the values' bytes"),
        (
            {"layout": "files", "value": "offset", "value_serde": "json", "timestamp": "timestamp"},
            "a serde reads bytes",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    aiven(tmp_path, [in_base64(b"{}")])
    with pytest.raises(ConfigurationError, match=said):
        load(LakeTopic("t", str(tmp_path / "topics"), **options), tmp_path / "w")


def test_keys_that_are_bytes_choose_their_partitions_by_these(tmp_path: Path) -> None:
    """As in Kafka: the bytes of the registry's wire format, not those of what they say."""
    keys = [b"\0\0\0\0\x01\x02\x02a", b"\0\0\0\0\x01\x04\x02b", b"\0\0\0\0\x01\x06\x02c", None]
    table = pa.table({"k": pa.array(keys, pa.binary()), "at": [AT] * 4, "n": [0, 1, 2, 3]})
    (tmp_path / "lake").mkdir()
    pq.write_table(table, tmp_path / "lake/rows.parquet")
    registry = Schemas((avro(1, OLD),))
    topic = LakeTopic("t", str(tmp_path / "lake"), key="k", timestamp="at", key_serde="registry", registry=registry)
    load(topic, tmp_path / "w")
    found = {r["value"]["n"]: (r["partition"], r["key"]) for r in records_of(tmp_path / "w", "t")}
    where = partition_for(pa.array(keys[:3], pa.binary()), 4).tolist()
    assert [found[n] for n in range(3)] == [
        (where[n], {"n": n + 1, "old": old}) for n, old in enumerate(["a", "b", "c"])
    ]
    assert found[3][1] is None


@given(
    rows=st.lists(st.binary(max_size=12), min_size=1, max_size=40),
    separator=st.sampled_from(["\n", "\r\n", "\0", "ab"]),
    ids=st.lists(st.sampled_from([1, 10, 2570]), min_size=1, max_size=40),
    block_bytes=st.integers(1, 40),
)
def test_values_of_avro_come_out_whole_whatever_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], separator: str, ids: list[int], block_bytes: int
) -> None:
    schema = '{"type": "record", "name": "v", "fields": [{"name": "b", "type": "bytes"}, {"name": "n", "type": "int"}]}'
    registry = Schemas(tuple(avro(schema_id, schema) for schema_id in (1, 10, 2570)))
    data = AvroSerde(schema).serialize(pa.array([{"b": b, "n": len(b)} for b in rows], AvroSerde(schema).arrow_type))
    folder = tmp_path_factory.mktemp("bytes")
    made = [b"\0" + struct.pack(">i", ids[n % len(ids)]) + one for n, one in enumerate(data.to_pylist())]
    base = folder / "topics/t/t+0+0.bin"
    base.parent.mkdir(parents=True)
    base.write_bytes(b"".join(one + separator.encode() for one in made))
    container(base.with_suffix(".keys.avro"), '{"type": "string"}', [str(n) for n in range(len(rows))])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(separated_bytes, "_BLOCK_BYTES", block_bytes)
        topic = LakeTopic(
            "t", f"{folder}/topics", delimiter=separator, value_serde="registry", registry=registry,
            timestamp="n", timestamp_unit="s",
        )  # fmt: skip
        load(topic, folder / "w")
    found = [(r["key"], r["value"]["b"]) for r in (records_of(folder / "w", "t"))]
    assert found == [(str(n), b) for n, b in enumerate(rows)]


def bytes_file(folder: Path, values: list[bytes], keys: list[bytes] | None, name: str = "t+0+0.bin") -> Path:
    path = folder / "topics/t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(value + b"\n" for value in values))
    if keys is not None:
        stem, _, ext = name.rpartition(".")
        path.with_name(f"{stem}.keys.{ext}").write_bytes(b"".join(key + b"\n" for key in keys))
    return path


def test_files_of_bytes_with_text_in_them(tmp_path: Path) -> None:
    values = [b'{"at": "2013-01-01", "n": 1}', b'{"at": "2013-01-02", "n": 2}', b"{"]
    bytes_file(tmp_path, values, [b"a", b"b", b"c"], "t+0+7.data")
    options: dict[str, Any] = {"format": "bytes", "value_serde": "json", "key_serde": StringSerde(), "timestamp": "at"}
    done = load(LakeTopic("t", f"{tmp_path}/topics", **options), tmp_path / "w", "quarantine")
    found = [(r["offset"], r["key"], r["value"]["n"]) for r in records_of(tmp_path / "w", "t")]
    assert (done.bad_rows, found) == (1, [(7, "a", 1), (8, "b", 2)])


def test_line_breaks_within_values_are_found_out_by_the_keys(tmp_path: Path) -> None:
    path = bytes_file(tmp_path, [b'{"at":\n"2013-01-01"}'], [b"a"])
    with pytest.raises(InputError, match="ends at row 1") as caught:
        load(LakeTopic("t", f"{tmp_path}/topics", value_serde="json", timestamp="at"), tmp_path / "w", "quarantine")
    assert caught.value.place["file"] == str(path)


def test_a_damaged_value_does_not_take_others_with_it(tmp_path: Path) -> None:
    good = [b"\0\0\0\0\x01\x02\x02a", b"\0\0\0\0\x01\x04\x02b"]
    damaged = [b"\0\0\0\0\x01\x02\x7fa", b"xyz", b"\0\0\0\0\x09\x02\x02a", b"\0\0\0\0\x01\x02\x02abc"]
    bytes_file(tmp_path, [good[0], *damaged, good[1]], None)
    options: dict[str, Any] = {"registry": Schemas((avro(1, OLD),)), "timestamp": "n", "timestamp_unit": "s"}
    done = load(LakeTopic("t", f"{tmp_path}/topics", **options), tmp_path / "w", "quarantine")
    assert [r["value"]["old"] for r in records_of(tmp_path / "w", "t")] == ["a", "b"]
    assert done.bad_rows == len(damaged)


def test_a_field_that_no_value_could_tell_is_not_what_is_said(tmp_path: Path) -> None:
    path = bytes_file(tmp_path, [b"\0\0\0\0\x09\x02\x02a"], None)
    topic = LakeTopic("t", f"{tmp_path}/topics", registry=Schemas(), timestamp="n")
    with pytest.raises(InputError, match="the registry has none with this id") as caught:
        load(topic, tmp_path / "w")
    assert (caught.value.place["file"], caught.value.place["row"]) == (str(path), 1)


def test_keys_that_the_registry_has_nothing_to_do_with(tmp_path: Path) -> None:
    """One option reads both; what to say of keys that are something else is part of the error."""
    rows = [
        {"key": in_base64(b"k1"), "value": in_wire_format(1, OLD, {"n": 1, "old": "a"}), "offset": 0, "timestamp": AT}
    ]
    write_file(tmp_path / "topics/t-0-0.jsonl", rows)
    options: dict[str, Any] = {"registry": Schemas((avro(1, OLD),))}
    with pytest.raises(InputError, match="magic byte is 0x6b.*--key-serde says how keys are read"):
        load(LakeTopic("t", f"{tmp_path}/topics", **options), tmp_path / "w")
    load(LakeTopic("t", f"{tmp_path}/topics", key_serde="string", value_serde="registry", **options), tmp_path / "w")
    load(LakeTopic("u", f"{tmp_path}/topics", value_serde="registry", **options), tmp_path / "w")
    assert [records_of(tmp_path / "w", name)[0]["key"] for name in ("t", "u")] == ["k1", in_base64(b"k1")]
