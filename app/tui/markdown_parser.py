"""The Markdown parser of answers: GitHub's dialect, with raw HTML as text, link targets and line breaks.

Textual omits HTML blocks, so that `<think>…` would disappear from an answer. It also shows a link's
text without its target, which a malicious answer could exploit. A single line break, which is a blank in
Markdown, stays one: models do not wrap their text, but end the lines of a poem with it. `<br>` is a line
break too: within the cell of a table, Markdown has no other.

Text is a link only if it says so: by a scheme, or as a Markdown link with one. GitHub's dialect also takes
`README.md`, `self.id` and `user@host.org` for addresses, and would show URLs that nobody wrote.
"""

import re
from typing import Any
from urllib.parse import unquote

from linkify_it import LinkifyIt  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_SCHEMES = ("http://", "https://", "mailto:")
_BREAK = re.compile(r"<br\s*/?>[ \t]*\n?[ \t]*", re.IGNORECASE)
_WIDE_PUNCTUATION = re.compile(
    "[\u3001-\u3011\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
"""Punctuation of East Asian scripts, which are written without blanks: it ends a URL."""
_PIPE = re.compile(r"(?<!\\)\|")


class SchemeLinks(LinkifyIt):  # type: ignore[misc]  # the package has no types
    """Finds URLs in text, only those with a scheme."""

    def __init__(self) -> None:
        super().__init__(options={"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})

    def match(self, text: str) -> list[Any] | None:
        """The URLs in a text."""
        found: list[Any] = super().match(text) or []
        return [_cut(one) for one in found] or None

    def match_at_start(self, text: str) -> Any | None:
        """The URL with which a text begins."""
        found = super().match_at_start(text)
        return None if found is None else _cut(found)


def _cut(found: Any) -> Any:
    """A URL up to the first punctuation mark of East Asian scripts."""
    if cut := _WIDE_PUNCTUATION.search(found.raw):
        found.last_index = found.index + cut.start()
        found.raw = found.text = found.url = found.raw[: cut.start()]
    return found


def make_parser() -> MarkdownIt:
    """A parser for untrusted text (`Markdown(parser_factory=…)`)."""
    parser = MarkdownIt("gfm-like", {"html": False})
    parser.linkify = SchemeLinks()
    parser.validateLink = _allowed  # type: ignore[method-assign]  # markdown-it's documented hook
    parser.inline.ruler.before("autolink", "html_breaks", _break_line)
    parser.core.ruler.after("block", "long_rows", _keep_long_rows)
    parser.core.ruler.push("link_targets", _show_targets)
    parser.core.ruler.push("line_breaks", _keep_line_breaks)
    return parser


def _allowed(url: str) -> bool:
    return url.strip().lower().startswith(_SCHEMES)


def _break_line(state: StateInline, silent: bool) -> bool:
    """`<br>`, with the blanks and the line break after it."""
    found = _BREAK.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _keep_long_rows(state: StateCore) -> None:
    """Show what a table's row has beyond its last column, in that column.

    GitHub's dialect drops it. In answers it is the rest of a cell with a pipe that was not escaped.
    """
    lines = state.src.split("\n")
    columns, cells = 0, 0
    row: Token | None = None
    for token in state.tokens:
        match token.type:
            case "table_open":
                columns = 0
            case "th_open":
                columns += 1
            case "tr_open":
                row, cells = token, 0
            case "td_open":
                cells += 1
            case "inline" if row is not None and row.map and cells and cells == columns:
                token.content = _last_cell(lines[row.map[0]], columns) or token.content
            case "tr_close":
                row = None


def _last_cell(line: str, columns: int) -> str | None:
    """All that a row has from its last column on; None if that is one cell."""
    line = line.strip().lstrip("> \t")  # a table in a quote
    line = line.removeprefix("|")
    bars = [bar.start() for bar in _PIPE.finditer(line)]
    if bars and bars[-1] == len(line) - 1:
        line = line[: bars.pop()]
    if len(bars) < columns:
        return None
    begin = bars[columns - 2] + 1 if columns > 1 else 0
    return line[begin:].strip().replace("\\|", "|")


def _show_targets(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = _with_targets(token.children)


def _keep_line_breaks(state: StateCore) -> None:
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


def _with_targets(children: list[Token]) -> list[Token]:
    shown: list[Token] = []
    target, words = "", ""
    for child in children:
        shown.append(child)
        if child.type == "link_open":
            target, words = str(child.attrs.get("href", "")), ""
        elif child.type == "link_close":
            if not _names(words, target):
                shown.append(_note(target))
        elif child.type == "image":
            shown.append(_note(str(child.attrs.get("src", ""))))
            words += child.content
        else:
            words += child.content
    return shown


def _names(words: str, target: str) -> bool:
    """Whether a link's text is its target."""
    words, target = unquote(words.strip()).rstrip("/"), unquote(target).rstrip("/")
    return words in (target, target.removeprefix("mailto:"))


def _note(target: str) -> Token:
    return Token("text", "", 0, content=f" ({target})")
