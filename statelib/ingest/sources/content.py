"""What a file's content is known by, whatever its name and its time."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from statelib.ingest.sources.opening import is_url, unreadable_file

if TYPE_CHECKING:
    from statelib.ingest.sources.files import SourceFile

_MADE_OF_CONTENT = re.compile(r'"?([0-9a-f]{32}(?:-\d+)?)"?')
"""An ETag of S3's that is the content's MD5, or that of the MD5s of its parts with their number."""


def content_of(file: SourceFile) -> str | None:
    """The SHA-256 of a file on this machine, which is read for it; an object's ETag, where that is made of its content.

    None: it is known by nothing. Tables' files need not be: they do not change.

    Raises:
        InputError: The file is not there any more, or may not be read.
    """
    if file.modified_ms is None:
        return None
    if is_url(file.path):
        match = _MADE_OF_CONTENT.fullmatch(file.version) if file.path.startswith(("s3:", "s3a:")) else None
        return f"etag:{match[1]}" if match else None
    try:
        with open(file.path, "rb") as opened:  # noqa: PTH123 - as all files of a lake are opened
            return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"
    except OSError as error:
        raise unreadable_file(file.path, error) from error
