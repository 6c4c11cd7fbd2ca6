"""Lines of the log that say what a phase has come to: a command that prints the same as its result leaves them out."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

result_log = logging.getLogger(__name__)


@contextmanager
def result_is_printed() -> Iterator[None]:
    """Around what a command does whose result is printed for people."""
    result_log.disabled = True
    try:
        yield
    finally:
        result_log.disabled = False
