"""The identity of a host: a process id in its state directory, which outlives processes and applications.

::

    <state_dir>/process-metadata.json    {"format_version": 1, "process_id": "<UUID>"}

A host is its disk: who comes back with an empty one has nothing, and is another. (Kafka Streams:
``kafka-streams-process-metadata``, ``StateDirectory.initializeProcessId``.)
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any
from uuid import UUID

from statelib.checkpoint.local_errors import local_errors
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT_VERSION = 1
FILE_NAME = "process-metadata.json"


def encode(process_id: UUID) -> bytes:
    """The file's bytes; see the module's docstring."""
    return (json.dumps({"format_version": FORMAT_VERSION, "process_id": str(process_id)}) + "\n").encode()


def decode(data: bytes, *, file: Path) -> UUID | None:
    """What `encode` was given; None: the bytes are damaged.

    Raises:
        ConfigurationError: A newer Hindstream wrote them.
    """
    try:
        raw: Any = json.loads(data)
        version = raw["format_version"]
        if isinstance(version, int) and version > FORMAT_VERSION:
            what = f"the process id has format version {version}, this Hindstream knows up to {FORMAT_VERSION}"
            raise ConfigurationError(what, file=file, next_step="run one release of Hindstream on all hosts")
        return UUID(raw["process_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def process_id(state_dir: Path, new_id: Callable[[], UUID]) -> UUID:
    """The id in a state directory; written there first where there is none, or a damaged one.

    Several processes that ask for the first time get the same one.

    Args:
        state_dir: Made if absent.
        new_id: Makes a random one.

    Raises:
        ConfigurationError: A newer Hindstream wrote it, or the directory may not be written.
        RetryableError: The disk is full, or fails.
    """
    file = state_dir / FILE_NAME
    with local_errors("read or write the process id", file):
        found = _read(file)
        if found is not None:
            return found
        state_dir.mkdir(parents=True, exist_ok=True)
        mine = new_id()
        part = file.with_name(f".{FILE_NAME}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            part.write_bytes(encode(mine))
            try:
                file.hardlink_to(part)
            except FileExistsError:
                if (other := _read(file)) is not None:
                    return other
                part.replace(file)  # damaged
        finally:
            part.unlink(missing_ok=True)
        return mine


def _read(file: Path) -> UUID | None:
    try:
        return decode(file.read_bytes(), file=file)
    except FileNotFoundError:
        return None
