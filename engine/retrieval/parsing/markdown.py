"""`markdown_outline`: the headings of a Markdown text."""

import re

from engine.retrieval.parsing.outline import MAX_TITLE, Outline, TextHeading

_LINE = re.compile(
    r"^(?:"
    r"(?P<fence> {0,3}(?P<mark>`{3,}|~{3,})[^\n]*)"
    r"| {0,3}(?P<hashes>#{1,6})(?P<atx>[ \t][^\n]*)?"
    r"| {0,3}(?P<setext>[^\s>#*+|\-=`~][^\n]*)\n {0,3}(?P<underline>=+|-+)[ \t]*\r?"
    r")$",
    re.MULTILINE,
)
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)")


def markdown_outline(text: str) -> Outline:
    """The headings, ATX (`## Title`) and setext (underlined), outside of code fences and front matter."""
    headings: list[TextHeading] = []
    fence = ""
    front = _FRONT_MATTER.match(text)
    position = front.end() if front else 0
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
        else:
            level = 1 if match["underline"].startswith("=") else 2
            headings.append(TextHeading(level, plain_title(match["setext"]), match.start()))
    document_title = next((one.title for one in headings if one.level == 1), None)
    return Outline(tuple(headings), title=document_title)


def plain_title(markup: str) -> str:
    """A heading without links and emphasis, at most `MAX_TITLE` characters of it."""
    return _MARKUP.sub("", _LINK.sub(r"\1", markup.strip()[:MAX_TITLE])).strip()


def _without_closing_hashes(title: str) -> str:
    title = title.strip()
    shorter = title.rstrip("#")
    return shorter if not shorter or shorter[-1] in " \t" else title
