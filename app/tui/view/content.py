"""Converts spans to Textual content; no other module of `view` imports Textual."""

from collections.abc import Iterable

from textual.content import Content
from textual.content import Span as ContentSpan
from textual.style import Style

from app.tui.view.spans import Line


def to_content(lines: Iterable[Line]) -> Content:
    """One `Content` of all lines. Styles remain theme variables, which adapt to another theme."""
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
