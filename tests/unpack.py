"""Unpacks archives on every Python that is supported."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpacks all files and folders of an archive; nothing else is let through, and nothing out of the folder.

    ``extractall(filter="data")`` would do, but there is none before Python 3.11.4.

    Raises:
        tarfile.ExtractError: A member is neither a file nor a folder, or its name leads out of the folder.
    """
    top = folder.resolve()
    for member in archive.getmembers():
        inside = (top / member.name).resolve().is_relative_to(top)
        if not inside or not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"the archive's member {member.name!r} is not a file or folder inside of it")
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        archive.extract(member, top, set_attrs=True)
