"""Whether OpenLineage is told anything by this process, and how long for that it stays."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.lineage.emission import Emission
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)
_is_inside: ContextVar[bool] = ContextVar("is_inside", default=False)
_missing_told: list[bool] = []


@contextmanager
def sent_before_return(settings: Settings) -> Iterator[None]:
    """Waits at its end for what is on its way, but not inside another of these."""
    if not settings.openlineage or _is_inside.get():
        yield
        return
    token = _is_inside.set(True)
    try:
        yield
    finally:
        _is_inside.reset(token)
        if (on_way := emission_if_wanted(settings)) is not None:
            on_way.wait()


def emission_if_wanted(settings: Settings) -> Emission | None:
    """None: nothing is told, or the client of OpenLineage is not there or cannot be set up; which is said once."""
    if not settings.openlineage:
        return None
    try:
        from hindstream.lineage.emission import emission  # noqa: PLC0415 - an extra

        return emission()
    except Exception as error:  # noqa: BLE001 - of its configuration too; the run is worth more
        if not _missing_told:
            _missing_told.append(True)
            step = "pip install 'hindstream[openlineage]', or check openlineage.yml (docs/lineage.md)"
            _log.warning("OpenLineage is told nothing: %s. Next: %s", error, step)
        return None
