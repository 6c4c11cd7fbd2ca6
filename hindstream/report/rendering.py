"""Pages from templates: one file each, with its styles, and with all that data says escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hindstream.console import numbers
from hindstream.console.differences import change_text
from hindstream.report.accounts import shares
from hindstream.report.kept_templates import kept_templates
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).parent / "templates"


def render(template: str, page: Mapping[str, object]) -> str:
    """The HTML of a page.

    Args:
        template: The name of a file in ``templates``.
        page: What it is given.
    """
    return _templates().get_template(template).render(page)


def load_templates() -> None:
    """Loads them all, for whoever is about to become a process that renders some."""
    for file in _FOLDER.iterdir():
        _templates().get_template(file.name)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        bytecode_cache=kept_templates("report"),
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
