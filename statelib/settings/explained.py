"""Settings for a person: values as text, credentials masked."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import ByteSize

from statelib.settings.storage_options import CREDENTIAL

_MASK = "***"


@dataclass(frozen=True, slots=True)
class ExplainedSetting:
    """A setting for a person: its value as text, where that is from, and what it does."""

    name: str
    value: str
    origin: str
    description: str


def shown(name: str, value: object) -> str:
    """The value of a setting as text; what is a credential by its name is masked."""
    if isinstance(value, dict):
        return json.dumps({key: _MASK if CREDENTIAL.search(key.lower()) else text for key, text in value.items()})
    if isinstance(value, ByteSize):
        return value.human_readable()
    if isinstance(value, tuple):
        return ",".join(value) or "none"
    return _MASK if CREDENTIAL.search(name) else str(value)
