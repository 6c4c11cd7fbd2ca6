"""What a document is: a small JSON object in a file of its own, with a format version and a checksum.

They are UTF-8 JSON with sorted keys. ``checksum`` is the SHA-256, in hex, of all else as JSON with sorted keys
and no white space: a reader looks at it first, so a flipped bit is damage and never another offset. Then comes
``format_version``: a document of a newer version is refused, never half understood. What the versions brought:

* 1: read as what it was, held and without the ledgers' ``dropped``;
* 2: ``end_of_input`` and the ledgers' ``dropped``;
* 3: ``checksum``. Documents of versions 1 and 2 have none, and damage in them may go unnoticed;
* 4: ``semantics`` and ``evolution``, and the description of a topology; state files named by their run (``run_id``);
  rollbacks (``rolled_back_to``, ``rollback``); ``begun_anew``;
* 5: ``taken_over``;
* 6: placement: its documents, and ``process_id``, ``fetched_bytes`` and ``began_at_ms`` of staged results;
* 7: ``table_id`` of sources, ``max_future``, ``future_records`` and ``unseen`` of a plan;
* 8: forks: ``forked_from``, and ``job`` of state files and of committed tasks;
* 9: repairs: ``repaired_by``, ``written`` of committed tasks, and ``leeway`` of plans; stores that are filled:
  ``filled`` of evolutions, and ``history`` of staged results; trials of a part of the keys: ``sample_keys`` of plans
  and of references of forks; outcomes of single tasks, and ``done_before`` of staged results; submissions to Spark;
  ``severity`` and ``share`` of checks, and ``source_checks`` of staged results; ``kafka-4.4`` of ``semantics``.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.storage import Storage

FORMAT_VERSION = 9
_CHECKSUM_FROM_VERSION = 3
_CHECKSUM = "checksum"


class Data(BaseModel):
    """A part of a document: immutable, without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Document(Data):
    """A document of its own file, with a format version."""

    kind: ClassVar[str]
    way_out: ClassVar[str] = "restore the file from a copy of the warehouse"
    """What to do where it is damaged."""
    format_version: int = FORMAT_VERSION

    def encode(self) -> bytes:
        """The document's bytes; equal documents give equal bytes."""
        raw = self.model_dump(mode="json")
        if self.format_version >= _CHECKSUM_FROM_VERSION:
            raw[_CHECKSUM] = json_checksum(raw)
        return (json.dumps(raw, sort_keys=True, indent=1) + "\n").encode()

    @classmethod
    def read_if_present(cls, storage: Storage, path: str) -> Self | None:
        """Reads the document at ``path``; None: there is none. Errors as `decode`."""
        data = storage.get_if_present(path)
        return None if data is None else cls.decode(data, file=storage.uri(path))

    @classmethod
    def decode(cls, data: bytes, *, file: str) -> Self:
        """Reads the document.

        Raises:
            CorruptedDataError: The bytes are not such a document, or not those that were written.
            ConfigurationError: A newer Hindstream wrote it.
        """
        try:
            raw: Any = json.loads(data)
        except ValueError as error:
            raise cls._damaged(f"it is not JSON: {error}", file) from error
        if not isinstance(raw, dict):
            raise cls._damaged("it is not a JSON object", file)
        found, version = raw.pop(_CHECKSUM, None), raw.get("format_version")
        is_of_old = isinstance(version, int) and version < _CHECKSUM_FROM_VERSION
        if found != (None if is_of_old else json_checksum(raw)):
            raise cls._damaged("its checksum is not that of its content", file)
        if isinstance(version, int) and version > FORMAT_VERSION:
            what = f"the {cls.kind} has format version {version}, this Hindstream knows up to {FORMAT_VERSION}"
            raise ConfigurationError(what, file=file, next_step="install the newer Hindstream that wrote it")
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise cls._damaged(str(error), file) from error

    @classmethod
    def _damaged(cls, why: str, file: str) -> CorruptedDataError:
        return CorruptedDataError(f"the {cls.kind} is damaged: {why}", file=file, next_step=cls.way_out)


def json_checksum(raw: Mapping[str, Any]) -> str:
    """The checksum of a document's content; see the module's docstring."""
    return hashlib.sha256(json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
