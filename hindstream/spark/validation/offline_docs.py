"""Makes a page of Data Docs one that needs no network, as all pages of Hindstream.

Great Expectations' pages take their styles, scripts, icons and logo from six other sites. What they show is in the page
itself, apart from the tables of the index, which are data for a script: these become tables here. All scripts and all
that is elsewhere go, and a style sheet of our own takes the place of theirs.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TABLE = re.compile(
    r"\$\('#(?P<id>[\w-]+)'\)\.bootstrapTable\(.*?columns: (?P<columns>\[.*?\]),\n\s*data: (?P<rows>\[.*?\]),\n",
    re.DOTALL,
)
_ELSEWHERE = (
    re.compile(r"<script\b.*?</script>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<footer\b.*?</footer>", re.DOTALL | re.IGNORECASE),  # asks the reader to subscribe
    re.compile(r"<style\b.*?</style>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<link\b[^>]*>", re.IGNORECASE),  # styles from elsewhere, and an icon that is not kept
)
_IMAGE = re.compile(r"<img\b[^>]*?(?:\balt=\"(?P<alt>[^\"]*)\"[^>]*)?>", re.IGNORECASE)
_ADDRESS = re.compile(r"\s+(?:href|src)=([\"'])https?://.*?\1", re.IGNORECASE)

_NOTHING_RUNS = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'\">"
)
"""Whatever a page holds, a browser neither runs nor fetches it."""


def offline(page: str) -> str:
    """The page without anything that is elsewhere, in our style."""
    tables = {match["id"]: _table(match) for match in _TABLE.finditer(page)}
    for pattern in _ELSEWHERE:
        page = pattern.sub("", page)
    page = _IMAGE.sub(lambda match: f"<b>{match['alt'] or ''}</b>", page)
    page = _ADDRESS.sub("", page)
    for name, rows in tables.items():
        page = re.sub(
            rf"(<table\b[^>]*\bid=\"?{name}\"?[\s>].*?)</table>", _ended_by(rows), page, count=1, flags=re.DOTALL
        )
    page = page.replace("<head>", f"<head>\n{_NOTHING_RUNS}", 1)
    return page.replace("</head>", f"<style>\n{_style()}</style>\n</head>", 1)


def _ended_by(rows: str) -> Any:
    return lambda match: f"{match[1]}{rows}</table>"


def _table(match: re.Match[str]) -> str:
    """Head and body; the cells are HTML already. A row's page is linked in a column of its own."""
    columns: Sequence[Mapping[str, str]] = ast.literal_eval(match["columns"])
    rows: Sequence[Mapping[str, object]] = ast.literal_eval(match["rows"])
    head = "".join(f"<th>{escape(column['title'])}</th>" for column in columns)
    body = ""
    for row in rows:
        cells = "".join(f"<td>{row.get(column['field'], '')}</td>" for column in columns)
        body += f'<tr>{cells}<td><a href="{escape(str(row["_table_row_link_path"]))}">open</a></td></tr>\n'
    return f"<thead><tr>{head}<th></th></tr></thead>\n<tbody>\n{body}</tbody>"


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
