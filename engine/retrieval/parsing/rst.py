"""`rst_outline`: the headings of a reStructuredText."""

import re

from engine.retrieval.parsing.outline import MAX_TITLE, Outline, TextHeading

_MARKS = r"=\-~^\"'`:.*+#_<>"
_HEADING = re.compile(
    rf"^(?:(?P<over>([{_MARKS}])\2{{2,}})[ \t]*\r?\n)?"
    rf"(?P<title>[^\s{_MARKS}][^\n]*|[{_MARKS}`]?\w[^\n]*)\r?\n"
    rf"(?P<under>([{_MARKS}])\5{{2,}})[ \t]*\r?$",
    re.MULTILINE,
)
_ROLE = re.compile(r":[\w:.+-]+:`([^`<]*?)(?:\s*<[^>]*>)?`|``?([^`]*)``?")


def rst_outline(text: str) -> Outline:
    """The headings: lines with an underline at least as long. Levels are in the order of first use."""
    levels: dict[tuple[str, bool], int] = {}
    headings: list[TextHeading] = []
    for match in _HEADING.finditer(text):
        title = match["title"].strip()
        if len(match["under"]) < len(title):
            continue
        style = (match["under"][0], match["over"] is not None)
        level = levels.setdefault(style, len(levels) + 1)
        plain = _ROLE.sub(lambda role: role[1] or role[2] or "", title[:MAX_TITLE])
        headings.append(TextHeading(level, plain, match.start()))
    return Outline(tuple(headings), title=headings[0].title if headings else None)
