"""What the operating system's error numbers about files mean to whoever has to mend it."""

from __future__ import annotations

import errno

from statelib.errors.kinds import ConfigurationError, RetryableError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FORBIDDEN = frozenset({errno.EPERM, errno.EACCES, errno.EROFS})

AGAIN = "run the same command again"
WHO_MAY_WRITE = "check who owns the directory and who may write to it"


def meaning(number: int | None, *, on_host: bool = False) -> tuple[type[ConfigurationError | RetryableError], str]:
    """The kind of error, and the next step.

    Args:
        number: None: there is none.
        on_host: The file is the host's own, below ``state_dir``, which may be set to another place.
    """
    if number in FORBIDDEN:
        return ConfigurationError, WHO_MAY_WRITE + (", or set another state_dir" if on_host else "")
    return RetryableError, f"free space on the disk, and {AGAIN}" if number in FULL else AGAIN
