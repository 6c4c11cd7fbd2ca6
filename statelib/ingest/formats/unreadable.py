"""Says of a file that cannot be read which one it is, and what to do."""

from __future__ import annotations

import csv
import lzma
import zipfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import HindstreamError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.ingest.sources.files import SourceFile

_DAMAGED = (
    pa.ArrowException, OSError, EOFError, ValueError, IndexError, KeyError, RuntimeError,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile, csv.Error,
)  # fmt: skip
"""What libraries raise that read a damaged file; RuntimeError: an archive has a password, JSON is too deep."""


@contextmanager
def unreadable(file: SourceFile, kind: str) -> Iterator[None]:
    """Turns what a library raises while it reads a file into an error that names the file.

    Raises:
        InputError: The file is damaged, or of another format.
    """
    try:
        yield
    except HindstreamError:
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        step = "replace the file by a copy that is whole, name its format (--format), or leave it out of the source"
        raise InputError(
            f"a file of the lake cannot be read as {kind}: {reason}", file=file.path, next_step=step
        ) from error
