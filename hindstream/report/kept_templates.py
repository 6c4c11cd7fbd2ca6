"""Templates as Python has compiled them, kept in the user's cache: to compile one takes longer than to render it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from jinja2 import FileSystemBytecodeCache

from hindstream.cache_folder import cache_folder

if TYPE_CHECKING:
    from jinja2.bccache import Bucket


class KeptTemplates(FileSystemBytecodeCache):
    """A folder of them; what cannot be read or kept there is compiled again."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Loads one, if it can be read."""
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps one, if there is room for it."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def kept_templates(of: str) -> KeptTemplates | None:
    """Those of one kind of environment; None: this user can keep nothing.

    Args:
        of: Its name, another one for each way in which it compiles them.
    """
    try:
        folder = cache_folder() / "templates" / of
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return KeptTemplates(str(folder))
