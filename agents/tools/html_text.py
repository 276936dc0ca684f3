"""`html_text`: the readable text of an HTML page, for a model.

Kept are text, headings, list items, table cells and the targets of links. Scripts, styles and what the page
hides by `hidden` or an inline `display: none` are left out: text that a reader of the page would not see has
no business in a prompt.
"""

import html
import re
from dataclasses import dataclass
from urllib.parse import urljoin

from agents.text.plain import plain
from engine.retrieval.parsing.html_parts import VOID, Tag, html_parts

_DROPPED = frozenset(
    "script style iframe noembed noframes template noscript svg object".split()  # noqa: SIM905
)
_BLOCKS = frozenset(
    """address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody thead tr ul""".split()  # noqa: SIM905
)
_OPTIONAL_END = frozenset(["p", "li", "dt", "dd", "td", "th", "tr", "option"])
_PREFIXES = {"li": "- ", **{f"h{level}": "#" * level + " " for level in range(1, 7)}}
_CELLS = frozenset(["td", "th"])
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE
)
_BLANK_LINES = re.compile(r"\n{3,}")
MAX_LINK_CHARS = 500


@dataclass(frozen=True, slots=True)
class HtmlText:
    """The text of a page.

    Attributes:
        title: content of its title element, on one line.
        text: its text, one block a line.
    """

    title: str
    text: str


def html_text(source: str, base: str = "") -> HtmlText:
    """Reduce a page to its text; `base` is its URL, for relative links."""
    writer = _Writer(base)
    for part in html_parts(source):
        writer.add(part)
    lines = (" ".join(line.split()) for line in plain("".join(writer.pieces)).split("\n"))
    text = _BLANK_LINES.sub("\n\n", "\n".join(lines))
    return HtmlText(" ".join(plain(writer.title).split()), text.strip())


class _Writer:
    """Collects the text of parts."""

    def __init__(self, base: str) -> None:
        self.pieces: list[str] = []
        self.title = ""
        self._base = base
        self._inside = ""
        self._hidden = ""  # name of the element whose content is left out
        self._depth = 0  # how many elements of that name are open
        self._links: list[str] = []

    def add(self, part: str | Tag) -> None:
        if isinstance(part, str):
            self._text(part)
        elif self._hidden:
            self._skip(part)
        elif part.closing:
            self._close(part.name)
        else:
            self._open(part)

    def _text(self, text: str) -> None:
        if self._hidden:
            return
        if self._inside == "title":
            self.title = self.title or html.unescape(text)
        else:
            self.pieces.append(html.unescape(text).replace("\n", " "))

    def _skip(self, tag: Tag) -> None:
        """Count elements of the hidden one's name, until the first of them has ended.

        One whose end tag is optional also ends where the next begins.
        """
        implied = self._hidden in _OPTIONAL_END and (
            tag.name == self._hidden or (self._hidden == "p" and tag.name in _BLOCKS)
        )
        if implied and not tag.closing:
            self._hidden = ""
            self.add(tag)
        elif tag.name == self._hidden:
            self._depth += -1 if tag.closing else 1
            if self._depth == 0:
                self._hidden = ""

    def _open(self, tag: Tag) -> None:
        name, attributes = tag.name, tag.attributes
        hidden = "hidden" in attributes or _HIDING.search(attributes.get("style", "")[:2_000])
        if name in _DROPPED or hidden:
            self.pieces.append(" ")
            if name not in VOID:
                self._hidden, self._depth = name, 1
            return
        self._inside = name
        if name in _BLOCKS:
            self.pieces.append("\n" + _PREFIXES.get(name, ""))
        elif name == "img":
            self.pieces.append(f" {attributes.get('alt', '')} ")
        elif name == "a":
            self._links.append(self._target(attributes.get("href", "")))

    def _close(self, name: str) -> None:
        self._inside = ""
        if name in _BLOCKS:
            self.pieces.append("\n")
        elif name in _CELLS:
            self.pieces.append(" | ")
        elif name == "a" and self._links and (target := self._links.pop()):
            self.pieces.append(f" <{target}>")

    def _target(self, link: str) -> str:
        if len(link) > MAX_LINK_CHARS:
            return ""
        try:
            joined = urljoin(self._base, link.strip())
        except ValueError:
            return ""
        usable = joined.startswith(("http://", "https://")) and len(joined) <= 2 * MAX_LINK_CHARS
        return "".join(joined.split()) if usable else ""
