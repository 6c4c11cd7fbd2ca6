"""Results for a program: JSON objects, one a line."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel

Output = Literal["table", "json"]


def print_json(result: object) -> None:
    """Prints one result on a line of its own, as `json_data` makes it; of all else (paths, types) the text."""
    sys.stdout.write(json.dumps(json_data(result), separators=(", ", ": "), ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def json_data(value: object) -> Any:
    """A value as JSON data: dataclasses and documents are objects, times texts in ISO 8601, sets sorted lists."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): json_data(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, AbstractSet)):
        found = [json_data(inner) for inner in value]
        return sorted(found) if isinstance(value, AbstractSet) else found
    if isinstance(value, date):
        return value.isoformat()
    return value
