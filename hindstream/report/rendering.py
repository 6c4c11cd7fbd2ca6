"""Pages from templates: one file each, with its styles, and with all that data says escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hindstream.console import numbers
from hindstream.console.differences import change_text
from hindstream.report.accounts import shares
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping


def render(template: str, page: Mapping[str, object]) -> str:
    """The HTML of a page.

    Args:
        template: The name of a file in ``templates``.
        page: What it is given.
    """
    return _templates().get_template(template).render(page)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "count": numbers.count_text,
            "change": change_text,
            "parameter": _parameter,
            "bytes": numbers.bytes_text,
            "seconds": numbers.seconds_text,
            "time": numbers.time_text,
        }
    )
    environment.globals.update({"counted": counted, "percent": numbers.percent_text, "shares": shares})
    return environment


def _parameter(value: object) -> str:
    """A parameter of an expectation: a list without brackets and quotes."""
    return ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
