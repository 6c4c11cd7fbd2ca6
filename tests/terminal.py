"""Pseudo-terminals for tests; a root that is only a folder has none."""

from __future__ import annotations

import os
import pty

import pytest


def opened_terminal() -> tuple[int, int]:
    """Both ends of a new one; skips the test where there is none."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no terminals: {error}")


def needs_terminals() -> None:
    """Skips the test where there are none."""
    for end in opened_terminal():
        os.close(end)
