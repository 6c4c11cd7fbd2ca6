"""Has Great Expectations keep the templates of its Data Docs as Python has compiled them.

Each of its views, and a page has several, compiles all templates that it uses for itself. That took longer than all
else that is done for a page.
"""

from __future__ import annotations

from typing import Any

import great_expectations as gx
from great_expectations.render.view.view import DefaultJinjaView

from hindstream.report.kept_templates import kept_templates

_init: Any = DefaultJinjaView.__init__


def init(self: Any, *args: Any, **options: Any) -> None:
    """As before, with a place for compiled templates."""
    _init(self, *args, **options)
    self.env.bytecode_cache = kept_templates(f"great_expectations-{gx.__version__}")


_VIEW: Any = DefaultJinjaView
_VIEW.__init__ = init
