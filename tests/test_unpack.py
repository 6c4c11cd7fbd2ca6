from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.unpack import unpack

if TYPE_CHECKING:
    from pathlib import Path


def archive_of(*members: tuple[str, bytes, int]) -> tarfile.TarFile:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, mode in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.linkname = kind, mode, "target"
            archive.addfile(member)
    file.seek(0)
    return tarfile.open(fileobj=file)


def test_files_and_folders(tmp_path: Path) -> None:
    unpack(archive_of(("a", tarfile.DIRTYPE, 0o700), ("a/run", tarfile.REGTYPE, 0o4777)), tmp_path / "there")
    assert (tmp_path / "there" / "a").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "there" / "a" / "run").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x"])
def test_nothing_gets_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(tarfile.ExtractError, match="inside of it"):
        unpack(archive_of((name, tarfile.REGTYPE, 0o644)), tmp_path / "there")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(tarfile.ExtractError, match="not a file or folder"):
        unpack(archive_of(("x", kind, 0o644)), tmp_path)
