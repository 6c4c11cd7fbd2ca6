"""Where the session of an environment listens, and what it must have in common with a command.

Standard library only, and little of it: every command imports it before it knows whether there is a session.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from pathlib import Path

FIXED_AT_START = ("PYTHON", "NUMBA_", "ARROW_", "OMP_", "OPENBLAS_", "MKL_", "MALLOC_", "LD_", "LC_", "LANG", "TZ")
"""How variables begin that the interpreter and libraries read once: a fork cannot take other values."""


def folder() -> Path:
    """Where sockets are: ``$XDG_RUNTIME_DIR``, else a folder of the user's in ``/tmp``."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given) / "hindstream" if given else Path(f"/tmp/hindstream-{os.getuid()}")  # noqa: S108 - see is_ours


def socket_path() -> Path:
    """The socket of this environment's session."""
    return folder() / f"{zlib.crc32(os.fsencode(sys.prefix)):08x}.sock"


def is_ours(path: Path) -> bool:
    """Whether the folder of a socket is there, and this user's alone: others could take what a command is given."""
    try:
        of = path.parent.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(of.st_mode) and of.st_uid == os.getuid() and not of.st_mode & 0o077


def traits() -> dict[str, object]:
    """What a process has from its start on: those of a command and of its session must be equal. As JSON data."""
    import resource  # noqa: PLC0415 - only where there is a session

    limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
    return {
        "python": [sys.prefix, sys.version],
        "flags": list(sys.flags),
        "options": sorted(map(str, sys._xoptions.items())),  # noqa: SLF001 - the only way to them
        "warnings": list(sys.warnoptions),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(FIXED_AT_START)},
        "limits": {name: list(limit) for name, limit in limits.items()},
        "groups": sorted(os.getgroups()),
        "processors": sorted(os.sched_getaffinity(0)),
    }
