"""A storage that keeps to itself what is written to it: to see what a step would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.kinds import InternalError
from statelib.storage.storage import Storage

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class DryRunStorage(Storage):
    """What is there, and what has been written here as a whole, which nobody else sees. Args as for `Storage`.

    Listings are those of what is there. Nothing else than whole objects can be written, and nothing deleted.
    """

    def __init__(self, root_uri: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(root_uri, options)
        self._written: dict[str, bytes] = {}

    def put(self, path: str, data: bytes) -> None:
        """Keeps an object."""
        self._written[self._key(path)] = data

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Keeps an object unless there is one already, here or there."""
        standing = self.get_if_present(path)
        if standing is None:
            self.put(path, data)
        return standing is None or standing == data

    def get(self, path: str) -> bytes:
        """An object's content, that which was written here first. Raises as `Storage.get` does."""
        kept = self._written.get(self._key(path))
        return super().get(path) if kept is None else kept

    def size(self, path: str) -> int:
        """An object's size in bytes, as of `get`."""
        kept = self._written.get(self._key(path))
        return super().size(path) if kept is None else len(kept)

    def sync(self, directory: str) -> None:
        """Nothing: what is there is somebody else's to bring to the disk."""

    def delete(self, paths: str | Sequence[str]) -> None:
        """Nothing is deleted in a dry run."""
        raise InternalError("a dry run is to delete files", file=str(paths))

    def copy(self, path: str, to: str) -> None:
        """Nothing is copied in a dry run."""
        raise InternalError("a dry run is to copy a file", file=self.uri(path), to=to)

    def upload(self, local_path: Path, path: str) -> None:
        """Nothing is uploaded in a dry run."""
        raise InternalError("a dry run is to upload a file", file=self.uri(path), source=local_path)

    def open_output(self, path: str) -> io.RawIOBase:
        """Nothing is written bit by bit in a dry run."""
        raise InternalError("a dry run is to write a file", file=self.uri(path))
