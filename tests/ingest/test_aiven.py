"""What Aiven's sinks leave beside JSON and Parquet: CSV, names by a template, rows without an envelope, Snappy."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.formats.snappy_java import MAGIC
from statelib.job.lake_topic import LakeTopic
from tests.ingest.connect_trees import real_records, real_tree
from tests.ingest.lake import load, records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

AT = 1_356_998_400_000
COLUMNS = ("key", "value", "offset", "timestamp", "headers")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("aiven-csv", {"columns": COLUMNS}),
        ("aiven-csv-plain", {"columns": COLUMNS[:4], "value_encoding": "none"}),
    ],
)
def test_trees_of_csv(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    topic = LakeTopic(
        "t", str(real_tree(name, tmp_path)), format="csv", key_serde="string", value_serde="binary", **options
    )
    load(topic, tmp_path / "w")
    found = [
        (r["partition"], r["offset"], r["timestamp"], r["key"], r["value"] and r["value"]["value"])
        for r in records_of(tmp_path / "w", "t")
    ]
    assert found == [(s.partition, s.offset, s.timestamp_ms, s.key, s.value) for s in real_records(name)]


def test_a_tree_without_an_envelope(tmp_path: Path) -> None:
    topic = LakeTopic(
        "t", str(real_tree("aiven-jsonl-bare", tmp_path)), layout="aiven", timestamp="amount", timestamp_unit="s"
    )
    load(topic, tmp_path / "w")
    found = {(r["partition"], r["offset"]): r["value"] for r in records_of(tmp_path / "w", "t")}
    for sent in real_records("aiven-jsonl-bare"):
        assert isinstance(sent.value, dict)
        moved = {(1, 107): (1, 103)}  # a gap within a file, which rows without offsets do not tell
        at = (sent.partition, sent.offset)
        assert found[moved.get(at, at)] == {"note": None} | sent.value


def test_a_tree_by_keys_is_read_as_plain_rows(tmp_path: Path) -> None:
    tree = real_tree("aiven-jsonl-keyed", tmp_path)
    with pytest.raises(ConfigurationError, match="not called as Aiven's sink calls them"):
        load(LakeTopic("t", str(tree), layout="aiven"), tmp_path / "w")
    with pytest.raises(ConfigurationError, match="has no variable .partition.") as caught:
        load(LakeTopic("t", str(tree), file_name_template="{{topic}}/key-{{key}}"), tmp_path / "w")
    assert "--layout files --key key --value value --timestamp timestamp" in (caught.value.next_step or "")
    load(LakeTopic("t", str(tree), format="json", key="key", value="value", timestamp="timestamp"), tmp_path / "w")
    newest = {sent.key: sent for sent in real_records("aiven-jsonl-keyed")}
    found = {r["key"]: (r["timestamp"], r["value"]) for r in records_of(tmp_path / "w", "t")}
    assert {key: at for key, (at, _) in found.items()} == {key: s.timestamp_ms for key, s in newest.items()}
    assert {key: value is None for key, (_, value) in found.items()} == {k: s.value is None for k, s in newest.items()}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{topic}}/{{partition}}/{{start_offset}}", "t/1/7.gz"),
        (
            "{{ topic }}/{{ partition:padding=true }}-{{start_offset:padding=true}}.jsonl",
            "t/0000000001-00000000000000000007.jsonl",
        ),
        ("{{start_offset}}_{{partition}}.{{topic}}.json", "7_1.t.json"),
        ("{{topic}}/{{key}}/{{partition}}-{{start_offset}}", "t/a-b/c/1-7.gz"),
        ("{{topic}}-{{partition}}-{{start_offset}}-{{timestamp:unit=yyyy}}{{timestamp:unit=MM}}", "t-1-7-202003.gz"),
        ("{{topic}}/{{topic}}+{{partition}}-{{start_offset}}", "t/t+1-7.gz"),
    ],
)
def test_names_by_a_template(tmp_path: Path, template: str, name: str) -> None:
    write_file(tmp_path / "lake/rows.jsonl.gz", [{"key": "a", "value": {"n": 7}, "offset": 7, "timestamp": AT}])
    to = tmp_path / "topics/prefix" / name
    to.parent.mkdir(parents=True)
    content = (tmp_path / "lake/rows.jsonl.gz").read_bytes()
    to.write_bytes(content if name.endswith(".gz") else gzip.decompress(content))
    topic = LakeTopic("t", f"{tmp_path}/topics", file_name_template=template)
    load(topic, tmp_path / "w")
    (record,) = records_of(tmp_path / "w", "t")
    assert (record["partition"], record["offset"], record["value"]) == (1, 7, {"n": 7})
    write_file(tmp_path / "topics/other.jsonl", [{"value": 1}])
    with pytest.raises(ConfigurationError, match="not called as Aiven's sink calls them") as caught:
        load(topic, tmp_path / "w")
    assert caught.value.place["file"] == f"{tmp_path}/topics/other.jsonl"


@pytest.mark.parametrize("template", ["{{topic}}-{{day}}", "{{topic}}", "{{topic}}/{{partition}}"])
def test_templates_that_tell_no_place(tmp_path: Path, template: str) -> None:
    write_file(tmp_path / "topics/t-1-7.jsonl", [{"value": 1, "offset": 7}])
    with pytest.raises(ConfigurationError, match="variable 'day'|do not tell"):
        load(LakeTopic("t", f"{tmp_path}/topics", file_name_template=template), tmp_path / "w")


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.binary(min_size=1, max_size=9),
            st.none() | st.text(st.sampled_from('a",;:{}é '), min_size=1, max_size=9),
            st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=3),
        ),
        min_size=1,
        max_size=9,
    ),
    order=st.permutations(COLUMNS),
    encoding=st.sampled_from(["base64", "none"]),
    ends=st.booleans(),
)
def test_csv_in_any_order_of_fields(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], order: list[str], encoding: Any, ends: bool
) -> None:
    def in_base64(data: bytes | None) -> bytes:
        return b"" if data is None else base64.b64encode(data)

    lines = []
    for n, (key, value, headers) in enumerate(rows):
        data = None if value is None else value.encode()
        parts = {
            "key": in_base64(key),
            "value": (data or b"") if encoding == "none" else in_base64(data),
            "offset": str(n + 3).encode(),
            "timestamp": str(AT + n).encode(),
            "headers": b"".join(b"%b:%b;" % (in_base64(h.encode()), in_base64(v)) for h, v in headers),
        }
        lines.append(b",".join(parts[name] for name in order))
    folder = tmp_path_factory.mktemp("csv")
    (folder / "lake").mkdir()
    (folder / "lake/t-0-3").write_bytes(b"\n".join(lines) + (b"\n" if ends else b""))
    options: dict[str, Any] = {"format": "csv", "columns": tuple(order), "value_encoding": encoding}
    load(LakeTopic("t", f"{folder}/lake", value_serde="string", **options), folder / "w")
    found = [
        (r["key"], r["value"] and r["value"]["value"], [(h["key"], h["value"]) for h in r["headers"]])
        for r in records_of(folder / "w", "t")
    ]
    assert found == rows


def test_csv_whose_fields_nobody_tells(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/t-0-0").write_text("YQ==,Yg==,0,1356998400000\nYQ==,%,1,x\n")
    with pytest.raises(ConfigurationError, match="does not tell which fields"):
        load(LakeTopic("t", f"{tmp_path}/lake", format="csv", layout="aiven"), tmp_path / "w")
    options: dict[str, Any] = {"format": "csv", "columns": COLUMNS[:4]}
    done = load(LakeTopic("t", f"{tmp_path}/lake", **options), tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (1, 1)
    (bad,) = records_of(tmp_path / "w", "t-quarantine")
    assert bad["value"]["reason"] == "value: it is no base64"


def test_csv_of_anybody_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/rows.csv").write_text("a,2013-01-01,1\nb,2013-01-02\nc,2013-01-03,x\nd,2013-01-04,4\n")
    options: dict[str, Any] = {"columns": ("id", "day", "n"), "types": {"n": "int64"}}
    topic = LakeTopic("t", f"{tmp_path}/lake", key="id", timestamp="day", partitions=1, **options)
    load(topic, tmp_path / "w", "quarantine")
    assert [(r["key"], r["value"]["n"]) for r in records_of(tmp_path / "w", "t")] == [("a", 1), ("d", 4)]
    rows = [{h["key"]: h["value"] for h in r["headers"]}["row"] for r in records_of(tmp_path / "w", "t-quarantine")]
    assert rows == [b"2", b"3"]


OF_SNAPPY_JAVA = (
    "glNOQVBQWQAAAAABAAAAAQAAATqACNh7InZhbHVlIjp7Im4iOjB9LCJvZmZzZXQiOjAsInRpbWVzdGFtcCI6MTM1Njk5ODQwMDAw"
    "MH0KNjcAADEdNwAxYjcAADE+NwAAMh03ADJiNwAAMj43AAAzHTcAM2I3AAAzPjcAADQdNwA0YjcAADQ+NwAANR03ADViNwAANT43"
    "AAA2HTcANmI3AAA2PjcAADcdNwA3YjcAADc+NwAAOB03BDgsXrgBADg+NwAAOR03ADliNwAAOT43AAAxLicCADFiKAIEMTBCOQAy"
    "KQJiKgIAMUIqAgAxLisCADFiLAIAMUIsAgAxLi0CADFiLgIAMUIuAgAxLi8CADFiMAIAMUIwAgAxLjECADFiMgIQMTV9CnsyfAMA"
    "MS4zAgAxYjQCADFCNAIAMS41AgAxYjYCBDE3QnIACDh9LAAAATqACOAib2Zmc2V0IjoxOCwidGltZXN0YW1wIjoxMzU2OTk4NDAw"
    "MDE4fQp7InZhbHVlIjp7Im4iOjE5fSwZOQA5YjkAADk+OQAEMjAdOQQyMF45AAQyMEI5AAAxLjkAADFiOQAAMUI5AAAyLjkAADJi"
    "OQAAMkI5AAAzLjkAADNiOQAAM0I5AAA0LjkAADRiOQAANEI5AAA1LjkAADViOQAANUI5AAA2LjkAADZiOQAANkI5AAA3LjkAADdi"
    "OQAAN0I5AAA4LjkAYjoCBDI4QjkAADkuOQBiOgIAMkI6AgAzLjoCADNiOgIAM0I6AgAzLjoCADNiOgIAM0I6AgAzLjoCADNiOgIA"
    "M0I6AgAzLjoCADNiOgIAM0I6AgAzLjoCADNiOgIAM0I6AgAzLjoCADNiOgIAM0I6AgQzNgAAAGbUAeB9LCJvZmZzZXQiOjM2LCJ0"
    "aW1lc3RhbXAiOjEzNTY5OTg0MDAwMzZ9CnsidmFsdWUiOnsibiI6MzcuOQAAN2I5AAA3QjkAADguOQAAOGI5AAA4QjkAADkuOQAA"
    "OWI5AAg5fQo="
)
"""40 rows that snappy-java 1.1.10.8 compressed in blocks of 1 KiB: ``SnappyOutputStream(out, 1024)``."""


def test_what_snappy_java_wrote(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/t-0-0.snappy").write_bytes(base64.b64decode(OF_SNAPPY_JAVA))
    load(LakeTopic("t", f"{tmp_path}/lake"), tmp_path / "w")
    assert [(r["offset"], r["value"]["n"]) for r in records_of(tmp_path / "w", "t")] == [(n, n) for n in range(40)]


@given(cuts=st.lists(st.integers(0, 4000), max_size=5), streams=st.integers(1, 3))
def test_streams_of_snappy(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], streams: int) -> None:
    rows = [{"value": {"n": n}, "offset": n, "timestamp": AT} for n in range(60)]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    blocks = [data[a:b] for a, b in pairwise(places)]
    parts = [pa.compress(block, codec="snappy", asbytes=True) for block in blocks]
    head = MAGIC + struct.pack(">ii", 1, 1)
    each = max(1, -(-len(parts) // streams))
    written = b"".join(
        (head if n % each == 0 else b"") + struct.pack(">i", len(part)) + part for n, part in enumerate(parts)
    )
    folder = tmp_path_factory.mktemp("snappy")
    (folder / "lake").mkdir()
    path = folder / "lake/t-0-0.snappy"
    path.write_bytes(written)
    assert load(LakeTopic("t", f"{folder}/lake"), folder / "w").records == 60
    path.with_name("t-0-60.snappy").write_bytes(written[:-1])
    with pytest.raises(InputError, match="ends within a block"):
        load(LakeTopic("t", f"{folder}/lake"), folder / "w")
