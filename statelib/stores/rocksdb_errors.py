"""RocksDB's errors, which are bare exceptions with a text, as our own."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors.error_numbers import FORBIDDEN, FULL, meaning
from statelib.errors.kinds import (
    ConfigurationError,
    CorruptedDataError,
    HindstreamError,
    InternalError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILE_IN_MESSAGE = re.compile(r"\S+\.(?:sst|log)\b|\S*MANIFEST-\d+|\S*CURRENT\b")


@contextmanager
def mapped_errors(path: Path) -> Iterator[None]:
    """Around calls of RocksDB: raises what `mapped` makes of their errors."""
    try:
        yield
    except (HindstreamError, StopIteration):
        raise
    except Exception as error:
        raise mapped(error, path) from error


def mapped(error: Exception, path: Path) -> HindstreamError:
    """What an error of RocksDB, in the database at ``path``, is in our terms."""
    text = str(error)
    found = _FILE_IN_MESSAGE.search(text)
    file = found.group() if found else path
    if "Corruption" in text or "No such file" in text:
        return CorruptedDataError(
            f"RocksDB found a damaged or missing file: {text}",
            file=file,
            next_step="restore the directory from a checkpoint",
        )
    number = _error_number(error)
    if "LOCK" in text and number is None:
        return ConfigurationError(
            "the state directory is open in another process",
            file=path,
            next_step="end that process, or give this one a directory of its own",
        )
    # RocksDB's, those of its layer in Rust, and Python's.
    if text.startswith("IO error") or "(os error " in text or isinstance(error, OSError):
        kind, next_step = meaning(number, on_host=True)
        return kind(f"RocksDB could not read or write: {text}", file=file, next_step=next_step)
    return InternalError(f"RocksDB failed: {text}", file=file)


def _error_number(error: Exception) -> int | None:
    """The system's number for an error; RocksDB and its layer in Rust have those that matter here in words alone."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    return next((number for number in FORBIDDEN | FULL if os.strerror(number) in str(error)), None)
