"""Files that are compressed as a whole: which codec a name stands for, and their content as a stream."""

from __future__ import annotations

import codecs
import lzma
import re
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.ingest.formats.snappy_java import MAGIC, SnappyJavaStream
from statelib.ingest.sources.opening import open_file, open_stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.ingest.sources.files import SourceFile

_CODECS = {
    "gz": "gzip",
    "gzip": "gzip",
    "bz2": "bz2",
    "zst": "zstd",
    "zstd": "zstd",
    "lz4": "lz4",
    "br": "brotli",
    "xz": "xz",
    "zip": "zip",
    "snappy": "snappy",
}
_OTHERS = {"7z": "7-zip", "lzo": "lzo"}
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zX": "xz",
    b"PK\x03\x04": "zip",
    MAGIC[:4]: "snappy",
}

_MAGIC_BYTES = 10
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""Text may well begin with the first three letters."""


def without_compression(name: str) -> tuple[str, str | None]:
    """A file's name without the suffix of a codec, and the codec.

    Raises:
        ConfigurationError: It is one that cannot be read.
    """
    stem, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() in _OTHERS:
        what = f"files that are compressed with {_OTHERS[suffix.lower()]} cannot be read"
        step = f"compress it with one of: {', '.join(sorted(set(_CODECS.values())))}"
        raise ConfigurationError(what, file=name, next_step=step)
    codec = _CODECS.get(suffix.lower()) if dot else None
    return (stem, codec) if codec else (name, None)


def compressed_by(file: SourceFile, options: Mapping[str, str]) -> str | None:
    """The codec of a file, by its name or its first bytes; None: it is not compressed."""
    _, codec = without_compression(file.name)
    if codec is not None:
        return codec
    with open_file(file, options) as opened:
        first = bytes(opened.read(_MAGIC_BYTES))
    if _BZIP2.match(first):
        return "bz2"
    return next((found for magic, found in _MAGIC.items() if first.startswith(magic)), None)


def open_content(file: SourceFile, options: Mapping[str, str]) -> pa.NativeFile:
    """What is in a file, decompressed."""
    codec = compressed_by(file, options)
    if codec == "zip":
        return _only_member(open_file(file, options))
    opened = open_stream(file, options)
    if codec is None:
        return opened
    if codec == "snappy":
        return pa.PythonFile(SnappyJavaStream(opened), "r")
    return pa.PythonFile(lzma.open(opened), "r") if codec == "xz" else pa.CompressedInputStream(opened, codec)


def open_text(file: SourceFile, options: Mapping[str, str], encoding: str) -> pa.NativeFile:
    """The text in a file as UTF-8, decompressed.

    Raises:
        ConfigurationError: There is no such encoding.
    """
    opened = open_content(file, options)
    try:
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        step = "name one that Python has, such as utf-8, utf-16 or latin-1"
        raise ConfigurationError(
            "there is no such encoding", setting="encoding", given=encoding, next_step=step
        ) from None
    return opened if is_utf8 else pa.transcoding_input_stream(opened, encoding, "utf-8")


def _only_member(opened: pa.NativeFile) -> pa.NativeFile:
    archive = zipfile.ZipFile(opened)
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        raise ValueError(f"it holds {counted(len(names), 'file')}: unpack it, one alone is read from an archive")
    return pa.PythonFile(archive.open(names[0]), "r")
