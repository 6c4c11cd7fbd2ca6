"""Compressed files: read whole, in one member or many; what is damaged is told by name, with no codec's own error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib.errors.kinds import InputError
from statelib.ingest.formats.csv import CsvDialect, csv_rows, csv_sample
from statelib.ingest.sources.find import find_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTENT = b"at,n\n" + b"".join(b"2013-01-01,%d\n" % (n * n) for n in range(20_000))


def _zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", content)
    return out.getvalue()


def _by_arrow(codec: str) -> Callable[[bytes], bytes]:
    return lambda content: pa.compress(content, codec=codec, asbytes=True)


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": _by_arrow("zstd"),
    "lz4": _by_arrow("lz4"),
    "br": _by_arrow("brotli"),
    "zip": _zipped,
}


def rows_of(path: Path, content: bytes) -> int:
    path.write_bytes(content)
    (file,) = find_files([str(path)], {})
    csv_sample(file, {}, CsvDialect())
    return sum(len(rows.numbers) for rows in csv_rows(file, {}, CsvDialect(), {}))


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_is_read_by_its_name_and_by_its_content(tmp_path: Path, codec: str) -> None:
    compressed = CODECS[codec](CONTENT)
    assert rows_of(tmp_path / f"a.csv.{codec}", compressed) == 20_000
    if codec != "br":  # which begins with anything
        assert rows_of(tmp_path / "a.csv", compressed) == 20_000
    if codec != "zip":
        assert (
            rows_of(tmp_path / f"b.csv.{codec}", CODECS[codec](CONTENT[:777]) + CODECS[codec](CONTENT[777:])) == 20_000
        )


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("damage", ["truncated", "overwritten", "other"])
def test_a_damaged_file_is_named(tmp_path: Path, codec: str, damage: str) -> None:
    whole = CODECS[codec](CONTENT)
    middle = len(whole) // 2
    content = {
        "truncated": whole[:-40],
        "overwritten": whole[:middle] + b"\xff" * 400 + whole[middle + 400 :],
        "other": CONTENT,
    }[damage]
    if damage == "overwritten" and codec in {"zst", "lz4"}:
        return  # neither has to carry a checksum
    with pytest.raises(InputError, match="cannot be read as CSV") as caught:
        rows_of(tmp_path / f"a.csv.{codec}", content)
    assert caught.value.place["file"] == str(tmp_path / f"a.csv.{codec}")


@pytest.mark.parametrize("header", ["BZhang,n", "PK,n", "(,n"])
def test_text_that_begins_like_a_codec_is_text(tmp_path: Path, header: str) -> None:
    assert rows_of(tmp_path / "a.csv", f"{header}\n1,2\n".encode()) == 1
