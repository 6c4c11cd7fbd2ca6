"""Opens files of a lake: on disk, in an object store, or as the catalog of an Iceberg table says."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import obstore
import pyarrow as pa

from statelib.errors.kinds import InputError
from statelib.ingest.sources.files import SourceFile
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors
from statelib.storage.streams import RangedInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.ingest.sources.files import IcebergFile

_READ_AHEAD_BYTES = 8 << 20


def is_url(source: str) -> bool:
    """Whether a source is in an object store."""
    return "://" in source and not source.startswith("file:")


def local_path(source: str) -> str:
    """The absolute path of a source on this machine."""
    path = unquote(urlsplit(source).path) if source.startswith("file:") else source
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - a Path loses the slash of a folder


def split_url(url: str) -> tuple[str, str]:
    """The bucket's URL, and the key in it."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}"
    return root, url.removeprefix(root).lstrip("/")


def open_python(file: SourceFile, options: Mapping[str, str]) -> IO[bytes]:
    """Opens a file as Python's own, for reading anywhere in it, with a buffer.

    Raises:
        InputError: It is not there any more, or may not be read.
        RetryableError: The store did not answer.
    """
    if "://" not in file.path:
        try:
            return open(file.path, "rb", _READ_AHEAD_BYTES)  # noqa: PTH123 - the caller closes it
        except OSError as error:
            raise unreadable_file(file.path, error) from error
    return io.BufferedReader(_ranged(file, options), _READ_AHEAD_BYTES)


def open_file(file: SourceFile, options: Mapping[str, str]) -> pa.NativeFile:
    """Opens a file as Arrow's, for reading anywhere in it. Errors as `open_python`."""
    if file.iceberg is not None and file.iceberg.properties is not None:
        return _opened_by_catalog(file)
    if "://" not in file.path:
        try:
            return pa.OSFile(file.path)
        except OSError as error:
            raise unreadable_file(file.path, error) from error
    return pa.PythonFile(_ranged(file, options), "r")


def _opened_by_catalog(file: SourceFile) -> pa.NativeFile:
    """A file of an Iceberg table, as the table's catalog says that it is opened."""
    assert file.iceberg is not None  # noqa: S101 - told by the caller
    try:
        opened: Any = input_opener(file.iceberg, {})(file.iceberg.uri).open()
    except OSError as error:
        raise unreadable_file(file.path, error) from error
    return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, "r")


def input_opener(iceberg: IcebergFile, options: Mapping[str, str]) -> Callable[[str], Any]:
    """What opens any file of an Iceberg table by its address: as `StoreInputs.new_input`, or pyiceberg's own.

    Args:
        iceberg: What is known of one of them.
        options: Of the object store, if the table was found in it and not by a catalog.
    """
    if iceberg.properties is None:
        return StoreInputs(options).new_input
    from pyiceberg.io import load_file_io  # noqa: PLC0415 - an extra

    return load_file_io(dict(iceberg.properties), iceberg.uri).new_input


@dataclass(frozen=True, slots=True)
class StoreInput:
    """A file at an address, in the interface of pyiceberg's ``InputFile`` as far as reading a table needs it.

    Attributes:
        location: Its address.
        options: Of the object store.
    """

    location: str
    options: Mapping[str, str]

    def open(self, *, seekable: bool = True) -> IO[bytes]:
        """Opens it. Errors as `open_python`, and `ConfigurationError` if an object is not there."""
        del seekable  # they all are
        path, size_bytes = path_of(self.location), 0
        if is_url(path):
            root, key = split_url(path)
            with mapped_errors("find", path, self.options):
                size_bytes = obstore.head(client(root, self.options), key)["size"]
        return open_python(SourceFile(path, size_bytes, ""), self.options)


@dataclass(frozen=True, slots=True)
class StoreInputs:
    """Opens the files of an Iceberg table as all other sources are opened, for pyiceberg, which calls it ``FileIO``.

    Attributes:
        options: Of the object store.
    """

    options: Mapping[str, str]

    def new_input(self, location: str) -> StoreInput:
        """What opens the file at an address."""
        return StoreInput(location, self.options)


def path_of(uri: str) -> str:
    """A file's address in a table's metadata as a source's path: that of a local one without its scheme."""
    if uri.startswith("file:"):
        return "/" + uri.removeprefix("file:").lstrip("/")
    scheme, separator, rest = uri.partition("://")
    return f"s3://{rest}" if separator and scheme in {"s3a", "s3n"} else uri


def open_stream(file: SourceFile, options: Mapping[str, str]) -> pa.NativeFile:
    """Opens a file for reading from its beginning to its end. Errors as `open_python`."""
    return pa.BufferedInputStream(open_file(file, options), _READ_AHEAD_BYTES)


def _ranged(file: SourceFile, options: Mapping[str, str]) -> RangedInput:
    root, key = split_url(file.path)
    options = options if file.options is None else dict(file.options)

    def read_range(start: int, length: int) -> bytes:
        with mapped_errors("read", file.path, options):
            return bytes(obstore.get_range(client(root, options), key, start=start, length=length))

    return RangedInput(file.size_bytes, read_range)


def unreadable_file(path: str, error: OSError) -> InputError:
    """What is said of a file that the system does not open."""
    step = "check that the file is there, and may be read"
    return InputError(f"a file of the lake cannot be read: {error.strerror or error}", file=path, next_step=step)
