"""Spans to Textual content: the only place where the two meet."""

from collections.abc import Iterable

from textual.content import Content
from textual.content import Span as ContentSpan
from textual.style import Style

from app.tui.view.spans import Line


def to_content(lines: Iterable[Line]) -> Content:
    """One `Content` of all lines; styles stay names, so a change of theme needs no rebuild."""
    parts: list[str] = []
    spans: list[ContentSpan] = []
    position = 0
    for number, line in enumerate(lines):
        if number:
            parts.append("\n")
            position += 1
        for span in line:
            end = position + len(span.text)
            if span.style:
                spans.append(ContentSpan(position, end, span.style))
            if span.action:
                spans.append(ContentSpan(position, end, Style.from_meta({"@click": span.action})))
            parts.append(span.text)
            position = end
    return Content("".join(parts), spans)
