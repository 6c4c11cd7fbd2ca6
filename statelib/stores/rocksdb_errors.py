"""RocksDB's errors, which are bare exceptions with a text, as our own."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors import (
    ConfigurationError,
    CorruptedDataError,
    HindstreamError,
    InternalError,
    RetryableError,
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
    if "LOCK" in text:
        return ConfigurationError(
            "the state directory is open in another process",
            file=path,
            next_step="end that process, or give this one a directory of its own",
        )
    if text.startswith("IO error") or "(os error " in text:  # RocksDB's, and those of its layer in Rust
        full = any(os.strerror(number) in text for number in (errno.ENOSPC, errno.EDQUOT))
        next_step = "free space on the disk, and run the same command again" if full else "run the same command again"
        return RetryableError(f"RocksDB could not read or write: {text}", file=file, next_step=next_step)
    return InternalError(f"RocksDB failed: {text}", file=file)
