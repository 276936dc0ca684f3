"""`markdown_outline`: the headings of a Markdown text, and the rows of its tables."""

import re

from engine.retrieval.parsing.markdown_table import TABLE_START, is_table, rows_at, table_outline
from engine.retrieval.parsing.outline import MAX_TITLE, Outline, RowHeader, TextHeading

_LINE = re.compile(
    r"^(?:"
    r"(?P<fence> {0,3}(?P<mark>`{3,}|~{3,})[^\n]*)"
    r"| {0,3}(?P<hashes>#{1,6})(?P<atx>[ \t][^\n]*)?"
    r"| {0,3}(?P<setext>[^\s>#*+|\-=`~][^\n]*)\n {0,3}(?P<underline>=+|-+)[ \t]*\r?"
    rf"|{TABLE_START}"
    r")$",
    re.MULTILINE,
)
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)")


def markdown_outline(text: str, *, goes_on: bool = False, in_table: bool = False) -> Outline:
    """What is outside of code fences and front matter.

    Headings are ATX (`## Title`) and setext (underlined). Rows of tables are breaks.

    Args:
        text: the text.
        goes_on: it is a later part of a text, which has no front matter.
        in_table: it begins inside of a table, below the header row.
    """
    headings: list[TextHeading] = []
    breaks: list[int] = []
    row_headers: list[RowHeader] = []
    fence = ""
    front = None if goes_on else _FRONT_MATTER.match(text)
    position = front.end() if front else 0
    if in_table:
        *breaks, position = rows_at(text, 0)
        row_headers.append(RowHeader(position, None))
    while (match := _LINE.search(text, position)) is not None:
        position = max(match.end(), match.start() + 1)
        mark: str | None = match["mark"]
        if mark is not None:
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and match["fence"].strip() == mark:
                fence = ""
        elif fence:
            position = text.find("\n", match.start()) + 1 or len(text)
        elif match["hashes"] is not None:
            title = plain_title(_without_closing_hashes(match["atx"] or ""))
            if title:
                headings.append(TextHeading(len(match["hashes"]), title, match.start()))
        elif match["rule"] is not None:
            if is_table(match["names"], match["rule"]):
                rows, headers = table_outline(text, match.end() + 1, match["names"])
                breaks += rows
                row_headers += headers
                position = headers[-1].start if headers else position
        else:
            level = 1 if match["underline"].startswith("=") else 2
            headings.append(TextHeading(level, plain_title(match["setext"]), match.start()))
    document_title = next((one.title for one in headings if one.level == 1), None)
    return Outline(tuple(headings), tuple(breaks), document_title, tuple(row_headers))


def plain_title(markup: str) -> str:
    """A heading without links and emphasis, at most `MAX_TITLE` characters of it."""
    return _MARKUP.sub("", _LINK.sub(r"\1", markup.strip()[:MAX_TITLE])).strip()


def _without_closing_hashes(title: str) -> str:
    title = title.strip()
    shorter = title.rstrip("#")
    return shorter if not shorter or shorter[-1] in " \t" else title
