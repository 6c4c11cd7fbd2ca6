from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.errors.kinds import InputError
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.footer import SEAL, read_footer
from tests.topics.data import SCHEMA, topic_records

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topics.files import ArchiveFile

END = 8


@pytest.fixture
def written(tmp_path: Path) -> tuple[TopicArchive, ArchiveFile, Path]:
    """An archive with one small file, and where that is."""
    archive = TopicArchive.create(str(tmp_path / "t"), SCHEMA, 1)
    with archive.writer(0, attempt="a") as writer:
        writer.write(topic_records(range(20)))
    archive.commit(writer.close(), app_id="a", app_version=1)
    archive = archive.refresh()
    (file,) = archive.files(0)
    return archive, file, tmp_path / "t" / file.path


def content(archive: TopicArchive, path: Path, data: bytes) -> pa.Table | None:
    """What a reader gives with these bytes in the file; None: an error names the file."""
    path.write_bytes(data)
    try:
        return archive.reader(0).read_all()
    except InputError as error:
        message = str(error)
    assert str(path) in message
    return None


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def footer_start(data: bytes) -> int:
    return len(data) - END - int.from_bytes(data[-END:-4], "little")


def test_layout(written: tuple[TopicArchive, ArchiveFile, Path]) -> None:
    _, file, path = written
    data = path.read_bytes()
    start = footer_start(data)
    assert data[start - 40 : start] == b"hsfooter" + hashlib.sha256(data[start:]).digest()
    assert len(data) == file.size_bytes


def test_others_read_a_sealed_file(written: tuple[TopicArchive, ArchiveFile, Path]) -> None:
    _, _, path = written
    assert pq.read_table(path).num_rows == 20
    assert duckdb.sql(f"select count(*), max(\"offset\") from '{path}'").fetchall() == [(20, 19)]


@pytest.mark.thorough
def test_every_flipped_bit_of_a_footer_is_noticed(written: tuple[TopicArchive, ArchiveFile, Path]) -> None:
    """Or it is in the name of the seal: then it changes nothing else."""
    archive, _, path = written
    data = path.read_bytes()
    start = footer_start(data)
    expected = archive.reader(0).read_all()
    harmless = []
    for bit in range(8 * (start - 40), 8 * len(data)):
        found = content(archive, path, flipped(data, bit))
        assert found is None or found == expected
        harmless += [] if found is None else [bit // 8]
    assert harmless == [place for place in range(start - 40, start - 32) for _ in range(8)]


def test_every_flipped_bit_of_the_pages_and_their_headers_is_noticed(
    written: tuple[TopicArchive, ArchiveFile, Path],
) -> None:
    """Or changes nothing: headers have statistics that nobody reads here."""
    archive, _, path = written
    data = path.read_bytes()
    expected = archive.reader(0).read_all()
    noticed = 0
    for bit in [8 * 672 + 1, *range(8 * 4, 8 * (footer_start(data) - 40), 11)]:  # 672: of a list, one value less
        found = content(archive, path, flipped(data, bit))
        assert found is None or found == expected
        noticed += found is None
    assert noticed > 4 * (footer_start(data) - 44) / 11


def sealed(table: pa.Table, path: Path) -> Any:
    pq.write_table(table, path)
    return pa.memory_map(str(path))


def test_files_without_a_seal_are_read(tmp_path: Path) -> None:
    table = pa.table({"a": range(3)})
    assert read_footer(sealed(table, tmp_path / "f")).num_rows == 3


def test_a_large_footer(tmp_path: Path) -> None:
    """Larger than what is read at first."""
    table = pa.table({f"a rather long name of a column, {n}": [n] for n in range(1500)})
    source = sealed(table, tmp_path / "f")
    assert source.size() - footer_start((tmp_path / "f").read_bytes()) > 1 << 16
    assert read_footer(source).num_columns == 1500


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 10, b"\xff" * 100, SEAL * 20])
def test_what_is_no_parquet_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pa.OSFile(str(tmp_path / "f")) as source, pytest.raises(pa.ArrowException):
        read_footer(source)
