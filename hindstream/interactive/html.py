"""Tables of HTML for a notebook; whatever is in them is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A title, and a row for each fact that is not None."""
    left = 'style="text-align: left"'
    rows = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(fact))}</td></tr>"
        for name, fact in facts.items()
        if fact is not None
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table></div>"


def rows_html(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a row for each of ``rows``."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
