"""Makes Great Expectations' Data Docs show what records hold as text, never as markup.

Its views escape the parameters of a sentence, and nothing else: a value in a table of unexpected values goes into the
page as it is, and so does a column's name in a heading or in the table of contents. What is replaced here are the two
methods through which these pass.
"""

from __future__ import annotations

from html import escape
from typing import Any

from great_expectations.render.view.view import DefaultJinjaPageView, DefaultJinjaView
from jinja2 import pass_context

_render_content_block: Any = DefaultJinjaView.render_content_block
_render: Any = DefaultJinjaPageView.render


@pass_context
def render_content_block(
    self: DefaultJinjaView,
    context: Any,
    content_block: Any,
    index: Any = None,
    content_block_id: Any = None,
    **kwargs: Any,
) -> Any:
    """What is no block of the library's own is text of somebody else's."""
    if isinstance(content_block, list):
        content_block = [element if _is_block(element) else escape(str(element)) for element in content_block]
    elif content_block is not None and not _is_block(content_block):
        return escape(str(content_block))
    return _render_content_block(self, context, content_block, index, content_block_id, **kwargs)


def render(self: DefaultJinjaPageView, document: Any, template: Any = None, **kwargs: Any) -> Any:
    """The names of sections are names of columns: the table of contents has them, and their headings as templates."""
    for section in getattr(document, "sections", ()):
        if isinstance(section.section_name, str):
            section.section_name = escape(section.section_name)
        for block in section.content_blocks:
            heading = getattr(getattr(block, "header", None), "string_template", {})
            if "template" in heading:
                heading["template"] = escape(heading["template"])
    return _render(self, document, template, **kwargs)


def _is_block(content: Any) -> bool:
    """Whether the library has a template for it, which renders its parts by themselves."""
    return isinstance(content, dict) and "content_block_type" in content


_VIEWS: Any = (DefaultJinjaView, DefaultJinjaPageView)
_VIEWS[0].render_content_block, _VIEWS[1].render = render_content_block, render
