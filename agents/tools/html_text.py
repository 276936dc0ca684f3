"""`html_text`: the readable text of an HTML page, for a model.

A scanner of its own, linear in the length of the page: on pages made for it, the standard library's parser
and tree-sitter's grammar take time quadratic in it (minutes for 200 kB of unclosed tags). It keeps text,
headings, list items, table cells and the targets of links. Scripts, styles and what the page hides by
`hidden` or an inline `display: none` are left out: text that a reader of the page would not see has no
business in a prompt.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin

from agents.text.plain import plain

_RAW = frozenset(
    "script style textarea title xmp iframe noembed noframes plaintext".split()  # noqa: SIM905
)
"""Elements whose content is text up to their end tag, whatever it looks like."""
_DROPPED = frozenset(
    "script style iframe noembed noframes template noscript svg object".split()  # noqa: SIM905
)
_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
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
_NAME = re.compile(r"[A-Za-z][^\s/>]{0,60}+")
_ATTRIBUTE = re.compile(r"[\s/]*+([^\s/>=]++)(\s*+=\s*+)?+")
_UNQUOTED = re.compile(r"[^\s>]*+")
_SPACE = re.compile(r"[\s/]*+")
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


class _Tag(NamedTuple):
    name: str
    attributes: dict[str, str]
    closing: bool


def html_text(source: str, base: str = "") -> HtmlText:
    """Reduce a page to its text; `base` is its URL, for relative links."""
    writer = _Writer(base)
    for part in _parts(source):
        writer.add(part)
    lines = (" ".join(line.split()) for line in plain("".join(writer.pieces)).split("\n"))
    text = _BLANK_LINES.sub("\n\n", "\n".join(lines))
    return HtmlText(" ".join(plain(writer.title).split()), text.strip())


def _parts(source: str) -> Iterator[str | _Tag]:
    """Texts and tags in their order. Whatever is not closed extends to the end, as in a browser."""
    at = 0
    while at < len(source):
        start = source.find("<", at)
        if start < 0:
            yield source[at:]
            return
        if start > at:
            yield source[at:start]
        if source.startswith("<!--", start):
            at = _after(source, "-->", start + 4)
        elif source.startswith(("<!", "<?"), start):
            at = _after(source, ">", start + 2)
        else:
            tag, at = _tag(source, start)
            if tag is None:
                yield "<"
                continue
            yield tag
            if tag.name in _RAW and not tag.closing:
                end = _raw_end(source, tag.name, at)
                yield source[at:end]
                at = end


def _after(source: str, closing: str, start: int) -> int:
    found = source.find(closing, start)
    return len(source) if found < 0 else found + len(closing)


def _tag(source: str, start: int) -> tuple[_Tag | None, int]:
    """The tag at `<` and the position behind it; None if the `<` is text."""
    closing = source.startswith("</", start)
    name = _NAME.match(source, start + 1 + closing)
    if name is None:
        return None, start + 1
    attributes: dict[str, str] = {}
    at = name.end()
    while True:
        at = _SPACE.match(source, at).end()  # type: ignore[union-attr]  # it matches the empty string
        if at >= len(source) or source[at] == ">":
            return _Tag(name[0].lower(), attributes, closing), at + 1
        found = _ATTRIBUTE.match(source, at)
        if found is None:  # a lone `=`
            at += 1
            continue
        at = found.end()
        value = ""
        if found[2]:
            if at < len(source) and source[at] in "\"'":
                end = source.find(source[at], at + 1)
                end = len(source) if end < 0 else end
                value, at = source[at + 1 : end], end + 1
            else:
                plain_value = _UNQUOTED.match(source, at)
                value, at = plain_value[0], plain_value.end()  # type: ignore[index, union-attr]
        attributes.setdefault(found[1].lower(), html.unescape(value))


def _raw_end(source: str, name: str, start: int) -> int:
    """Where the end tag of a raw element begins."""
    if name == "plaintext":
        return len(source)
    found = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(source, start)
    return found.start() if found else len(source)


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

    def add(self, part: str | _Tag) -> None:
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

    def _skip(self, tag: _Tag) -> None:
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

    def _open(self, tag: _Tag) -> None:
        name, attributes = tag.name, tag.attributes
        hidden = "hidden" in attributes or _HIDING.search(attributes.get("style", "")[:2_000])
        if name in _DROPPED or hidden:
            self.pieces.append(" ")
            if name not in _VOID:
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
