"""How many examples a costly property gets."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings


def examples(everyday: int, campaign: int | None = None, **others: Any) -> settings:
    """Settings of a property: ``everyday`` examples in a plain run of the tests.

    In a campaign ``campaign``, or as many as of any other property.
    """
    if os.environ.get("HYPOTHESIS_PROFILE") != "campaign":
        return settings(max_examples=everyday, **others)
    return settings(**others) if campaign is None else settings(max_examples=campaign, **others)
