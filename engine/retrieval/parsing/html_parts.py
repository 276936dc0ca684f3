"""`html_parts`: the texts and tags of an HTML page, in their order.

A scanner of its own, linear in the length of the page: on pages made for it, the standard library's parser
and tree-sitter's grammar take time quadratic in it (minutes for 200 kB of unclosed tags).
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_RAW = frozenset(
    "script style textarea title xmp iframe noembed noframes plaintext".split()  # noqa: SIM905
)
"""Elements whose content is text up to their end tag, whatever it looks like."""
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""Elements without content."""
_NAME = re.compile(r"[A-Za-z][^\s/>]{0,60}+")
_ATTRIBUTE = re.compile(r"[\s/]*+([^\s/>=]++)(\s*+=\s*+)?+")
_UNQUOTED = re.compile(r"[^\s>]*+")
_SPACE = re.compile(r"[\s/]*+")


class Tag(NamedTuple):
    """A tag.

    Attributes:
        name: in lower case.
        attributes: by name in lower case, without character references; empty for those without a value.
        closing: whether it is an end tag.
        empty: whether it ends with `/>`, which closes the element in XHTML alone.
    """

    name: str
    attributes: dict[str, str]
    closing: bool
    empty: bool


def html_parts(source: str, *, xhtml: bool = False) -> Iterator[str | Tag]:
    """Texts, with their character references, and tags.

    What is not closed extends to the end, as in a browser.

    Args:
        source: the page.
        xhtml: whether `<script/>` is an element without content.
    """
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
            if tag.name in _RAW and not tag.closing and not (xhtml and tag.empty):
                end = _raw_end(source, tag.name, at)
                yield source[at:end]
                at = end


def _after(source: str, closing: str, start: int) -> int:
    found = source.find(closing, start)
    return len(source) if found < 0 else found + len(closing)


def _tag(source: str, start: int) -> tuple[Tag | None, int]:
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
            empty = source[at - 1 : at] == "/"
            return Tag(name[0].lower(), attributes, closing, empty), at + 1
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
