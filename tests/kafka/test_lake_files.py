"""Files of bytes that a real registry's schemas describe, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hindstream.kafka.registry import SchemaRegistry
from statelib.serdes.schema_source import RegisteredSchema
from tests.command import hindstream
from tests.ingest.debezium import KEY_SCHEMA, VALUE_SCHEMA, as_records, events, told
from tests.ingest.lake import records_of

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_changes_of_a_database_in_files_of_bytes(tmp_path: Path, schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    heads = [
        b"\0" + registry.id_of(f"{unique}-{part}", RegisteredSchema("AVRO", text), register=True).to_bytes(4, "big")
        for part, text in (("key", KEY_SCHEMA), ("value", VALUE_SCHEMA))
    ]
    changes = [event for event in events() if event.value is not None and event.key is not None]

    def write(first: int, last: int) -> None:
        base = tmp_path / f"topics/customers/partition=0/customers+0+{first:010}"
        base.parent.mkdir(parents=True, exist_ok=True)
        written = [(heads[0] + (e.key or b"")[5:], heads[1] + (e.value or b"")[5:]) for e in changes[first:last]]
        base.with_suffix(".keys.bin").write_bytes(b"".join(key + b"\n" for key, _ in written))
        base.with_suffix(".bin").write_bytes(b"".join(value + b"\n" for _, value in written))

    write(0, 3)
    options = ("--envelope", "debezium", "--registry", schema_registry)
    looked = hindstream("ingest", "customers", "topics/customers", *options, "--dry-run", cwd=tmp_path)
    assert "balance" in looked.stdout, looked.stderr
    first = hindstream("ingest", "customers", "topics/customers", *options, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    write(3, len(changes))
    again = hindstream("ingest", "customers", cwd=tmp_path)  # from the same registry
    assert again.returncode == 0, again.stderr
    found = [one[1:] for one in told(records_of(tmp_path / "warehouse", "customers"))]
    assert found == [one[1:] for one in as_records(changes)]
