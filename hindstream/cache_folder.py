"""Where things of a user are kept that can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``hindstream`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; it may not be there yet.

    Raises:
        RuntimeError: The user has no home.
    """
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hindstream"
