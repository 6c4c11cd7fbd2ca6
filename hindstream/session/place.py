"""Where the session of an environment listens, and what it must have in common with a command.

Standard library only, and little of it: every command imports it before it knows whether there is a session.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from pathlib import Path

FIXED_AT_START = (
    *("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "SSL_CERT_"),
    *("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "NUMBA_", "LLVMLITE_", "NVPL_"),
    *("ARROW_", "PYARROW_", "NUMPY_", "NPY_", "PANDAS_", "SCIPY_", "PYDANTIC_", "TYPER_", "OTEL_"),
)
"""How variables begin that the interpreter and libraries read once: a fork cannot take other values."""

PACKAGES = ("hindstream", "statelib")


def folder() -> Path:
    """Where sockets are: ``$XDG_RUNTIME_DIR``, else a folder of the user's in ``/tmp``."""
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return given / "hindstream" if given.is_absolute() else Path(f"/tmp/hindstream-{os.getuid()}")  # noqa: S108 - see is_ours


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
    import importlib.util  # noqa: PLC0415 - only where there is a session
    import resource  # noqa: PLC0415

    limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
    specifications = [importlib.util.find_spec(name) for name in PACKAGES]
    root = Path("/").stat()
    return {
        "python": [sys.prefix, sys.version],
        "packages": [None if of is None else of.origin for of in specifications],
        "buffers": [getattr(sys.__stdout__, "write_through", None)],  # -u is no flag
        "flags": list(sys.flags),
        "options": sorted(map(str, sys._xoptions.items())),  # noqa: SLF001 - the only way to them
        "warnings": list(sys.warnoptions),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(FIXED_AT_START)},
        "limits": {name: list(limit) for name, limit in limits.items()},
        "user": [*os.getresuid(), *os.getresgid(), *sorted(os.getgroups())],
        "processors": sorted(os.sched_getaffinity(0)),
        "priority": [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)],
        "root": [root.st_dev, root.st_ino],
        "namespaces": sorted(str(path.readlink()) for path in Path("/proc/self/ns").iterdir()),
    }
