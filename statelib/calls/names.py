"""Which names nodes, stores and topics can have: Kafka's rule (``Named.validate`` and ``Topic.validate``, the same)."""

from __future__ import annotations

import re

from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call

MAX_NAME_LENGTH = 249
ALLOWED = "use 1 to 249 ASCII letters, digits, '.', '_' and '-', and not '.' or '..' alone"
_LEGAL = re.compile(rf"(?!\.{{1,2}}\Z)[A-Za-z0-9._-]{{1,{MAX_NAME_LENGTH}}}")
_SHOWN = 60


def check_name(name: object, of: str, **where: object) -> None:
    """Looks whether Kafka Streams would have something of that name.

    Args:
        name: The name.
        of: What it is the name of: ``a node``, ``a store``.
        where: See `HindstreamError`: the node, for instance.

    Raises:
        ConfigurationError: It would not; says which characters can be in one.
    """
    if isinstance(name, str) and _LEGAL.fullmatch(name):
        return
    shown = repr(name)
    if len(shown) > _SHOWN:
        length = f", {len(name)} characters long," if isinstance(name, str) else ""
        shown = f"{shown[:_SHOWN]}...{length}"
    raise ConfigurationError(f"{shown} is not a valid name of {of}", next_step=ALLOWED, **where)


def check_given_name(name: str | None, of: str) -> None:
    """As `check_name`, of what a job has just given: the error names its line. None is no name, and one is made."""
    if name is not None:
        check_name(name, of, **place_of_call())
