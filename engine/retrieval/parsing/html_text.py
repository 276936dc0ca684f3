"""`extract_html`: the visible text of an HTML document, with its headings.

Scripts, styles, navigation and hidden parts are left out. If the document marks its main part (`<main>` or
`role="main"`), only that is kept.
"""

import html
import re

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_parts import VOID, html_parts
from engine.retrieval.parsing.outline import TextHeading
from engine.retrieval.parsing.text_builder import TextBuilder

_SKIPPED = frozenset([
    "script", "style", "noscript", "template", "svg", "math", "canvas", "iframe", "object", "audio",
    "video", "select", "button", "nav", "dialog",
])  # fmt: skip
_PARAGRAPHS = frozenset([
    "p", "div", "section", "article", "main", "header", "footer", "aside", "ul", "ol", "dl",
    "table", "pre", "blockquote", "figure", "form", "details", "fieldset", "address", "body",
])  # fmt: skip
_LINES = frozenset([
    "li", "dt", "dd", "tr", "br", "hr", "caption", "figcaption", "summary", "option", "legend",
])  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\n\f]+")


class _Collector:
    """Adds the text to a builder while it is fed. Markup that does not fit together is tolerated."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._skipping, self._skip_depth = "", 0
        self._pre = 0
        self._space = False
        self._item = -1
        self._heading: tuple[int, int, list[str]] | None = None
        self._document_title: list[str] | None = None
        self._main, self._main_depth = "", 0
        self.main_start = self.main_end = -1

    def feed(self, markup: str) -> None:
        """Add a document."""
        for part in html_parts(markup, xhtml=True):
            if isinstance(part, str):
                self._data(html.unescape(part))
            elif part.closing:
                self._end(part.name)
            else:
                self._start(part.name, part.attributes)
                if part.empty:
                    self._end(part.name)

    def _start(self, tag: str, attrs: dict[str, str]) -> None:
        if self._skip_depth:
            self._skip_depth += tag == self._skipping
            return
        if tag == "title":
            self._document_title = []
            return
        if tag not in VOID and (tag in _SKIPPED or (attrs and _is_apart(attrs))):
            self._skipping, self._skip_depth = tag, 1
            return
        if self._main:
            self._main_depth += tag == self._main
        elif self.main_start < 0 and (tag == "main" or attrs.get("role") == "main"):
            self._main, self._main_depth = tag, 1
            self._builder.paragraph()
            self.main_start = len(self._builder)
        self._open(tag, attrs)

    def _open(self, tag: str, attrs: dict[str, str]) -> None:
        builder = self._builder
        if tag in _HEADINGS:
            self._paragraph()
            self._heading = (_HEADINGS[tag], len(builder), [])
        elif tag in _PARAGRAPHS:
            self._paragraph()
            self._pre += tag == "pre"
        elif tag in _LINES:
            self._line()
            if tag == "dt" and "id" in attrs:
                builder.mark_break()
            elif tag == "li":
                builder.add("- ")
                self._item = len(builder)
        elif tag in ("td", "th"):
            if not builder.at_line_start:
                builder.add(" | ")
            self._space = False
        elif tag == "img":
            self._data(attrs.get("alt", ""))

    def _end(self, tag: str) -> None:
        if self._skip_depth:
            self._skip_depth -= tag == self._skipping
            return
        if tag == "title" and self._document_title is not None:
            self._builder.title = _SPACE.sub(" ", "".join(self._document_title)).strip() or None
            self._document_title = None
        elif tag in _HEADINGS:
            self._end_heading()
            self._paragraph()
        elif tag in _PARAGRAPHS:
            self._pre = max(0, self._pre - (tag == "pre"))
            self._paragraph()
        elif tag in _LINES:
            self._line()
        if self._main and tag == self._main:
            self._main_depth -= 1
            if not self._main_depth:
                self._main, self.main_end = "", len(self._builder)

    def _data(self, data: str) -> None:
        if self._document_title is not None:
            self._document_title.append(data)
            return
        if self._skip_depth or not data:
            return
        if self._pre:
            self._builder.add(data)
            return
        text = _SPACE.sub(" ", data)
        leading = text[0] == " "
        text = text[1:] if leading else text
        if not text:
            self._space = True
            return
        if (leading or self._space) and not self._builder.at_line_start:
            text = " " + text
        self._space = text[-1] == " "
        text = text[:-1] if self._space else text
        self._builder.add(text)
        if self._heading is not None:
            self._heading[2].append(text)

    def finish(self) -> None:
        """End what the markup leaves open."""
        self._end_heading()

    def _end_heading(self) -> None:
        if self._heading is not None:
            level, start, parts = self._heading
            title = " ".join("".join(parts).split())
            if title:
                self._builder.heading(level, title, start)
            self._heading = None

    def _paragraph(self) -> None:
        self._end_heading()
        if len(self._builder) != self._item:  # the text of an item stands behind its dash
            self._builder.paragraph()
        self._space = False

    def _line(self) -> None:
        self._builder.line()
        self._space = False


def _is_apart(attributes: dict[str, str]) -> bool:
    """Whether an element is hidden, navigation, or the sign that links to a heading."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in ("navigation", "search", "banner", "contentinfo")
        or attributes.get("class") in ("headerlink", "anchorjs-link", "sphinxsidebar")
    )


def extract_html(markup: str, most: int) -> Extracted:
    """The text of an HTML document.

    Args:
        markup: the document.
        most: characters of text.

    Raises:
        TextTooLong: it has more text.
    """
    builder = TextBuilder(most)
    collector = _Collector(builder)
    collector.feed(markup)
    collector.finish()
    whole = builder.extracted()
    start, end = collector.main_start, collector.main_end
    end = end if end >= 0 else len(whole.text)
    if start < 0 or not whole.text[start:end].strip():
        return whole
    return _part(whole, start, end)


def _part(whole: Extracted, start: int, end: int) -> Extracted:
    return whole._replace(
        text=whole.text[start:end],
        headings=tuple(
            TextHeading(one.level, one.title, one.start - start)
            for one in whole.headings
            if start <= one.start < end
        ),
        breaks=tuple(one - start for one in whole.breaks if start <= one < end),
    )
