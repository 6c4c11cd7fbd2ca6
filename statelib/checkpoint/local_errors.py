"""What errors of this host's disk mean to the user."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors.error_numbers import AGAIN, meaning
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_IN_THE_WAY = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY})


@contextmanager
def local_errors(verb: str, path: Path) -> Iterator[None]:
    """Maps errors of the file system to Hindstream's; of want of memory see `statelib.errors.exhausted`.

    Args:
        verb: What is being done, as in "cannot restore the state".
        path: Named where the error names no file itself.

    Raises:
        RetryableError: The disk is full, or fails.
        ConfigurationError: The file may not be written, or there is a directory in its place, or the other way round.
    """
    try:
        yield
    except OSError as error:
        file = error.filename2 or error.filename or path
        what = f"cannot {verb}: {error.strerror or error}"
        if error.errno in _IN_THE_WAY:
            next_step = f"move what is in its place away, and {AGAIN}"
            raise ConfigurationError(what, file=file, next_step=next_step) from error
        kind, next_step = meaning(error.errno, on_host=True)
        raise kind(what, file=file, next_step=next_step) from error
