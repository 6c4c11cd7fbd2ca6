"""The line of the user's own code in which an error was raised."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from pathlib import Path

_OURS = Path(__file__).parent
_STANDARD = Path(sysconfig.get_path("stdlib"))


def place_in_user_code(error: BaseException) -> dict[str, object]:
    """``file`` and ``line`` of the last frame that is neither Hindstream's nor a library's; empty if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return {"file": frames[-1].filename, "line": frames[-1].lineno} if frames else {}


def _is_users(filename: str) -> bool:
    path = Path(filename)
    is_library = "site-packages" in path.parts or path.is_relative_to(_STANDARD) or filename.startswith("<")
    return not is_library and not path.is_relative_to(_OURS)


def place_of_call() -> dict[str, object]:
    """``file`` and ``line`` of what has called into Hindstream, where this is called; empty if that is no file's."""
    frame = sys._getframe(1)  # noqa: SLF001 - what walks the whole stack reads the lines of all files
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return {"file": frame.f_code.co_filename, "line": frame.f_lineno}
        frame = frame.f_back  # type: ignore[assignment]
    return {}
