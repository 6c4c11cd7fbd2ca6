"""Values of expectations and frames as JSON data."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

_MISSING = ("NAType", "NaTType")
"""What pandas calls the types of what is missing; not imported, since it takes half a second."""


def plain(value: Any) -> Any:  # noqa: PLR0911 - one for each kind of value
    """A value as JSON data: times in ISO 8601, anything unknown as text, what is missing (NaN, NaT, <NA>) as None."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(inner) for inner in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if type(value).__name__ in _MISSING or (isinstance(value, (float, np.floating, Decimal)) and value != value):  # noqa: PLR0124 - NaN
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else str(value)
    return plain(value.item()) if isinstance(value, np.generic) else str(value)
