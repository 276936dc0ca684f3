"""`extract_web_page`: the text of a web page with the targets of its links, for a model that reads it."""

from urllib.parse import urljoin

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_text import tree_text
from engine.retrieval.parsing.html_tree import elements, parse_html

MAX_LINK_CHARS = 500


def extract_web_page(data: bytes, most: int) -> Extracted:
    """The text as `extract_html` gives it, links as `text <https://…>`, headings as `## Title`.

    Args:
        data: the address of the page on a line, then the page, in UTF-8.
        most: characters of text.

    Raises:
        TextTooLong: it has more text.
    """
    base, _, markup = data.decode("utf-8", "replace").partition("\n")
    tree = parse_html(markup)
    declared = next(
        (one for one in elements(tree) if one.name == "base" and "href" in one.attributes), None
    )
    if declared is not None:
        base = _joined(base, declared.attributes["href"])
    found = tree_text(tree, most, link=lambda target: _target(base, target))
    end = len(found.text)
    parts: list[str] = []
    for one in sorted(found.headings, key=lambda heading: heading.start, reverse=True):
        parts += (found.text[one.start : end], "#" * one.level + " ")
        end = one.start
    text = found.text[:end] + "".join(reversed(parts))
    return Extracted(text, title=found.title)


def _target(base: str, link: str) -> str:
    if not link.strip() or len(link) > MAX_LINK_CHARS:
        return ""
    joined = _joined(base, link)
    usable = joined.startswith(("http://", "https://")) and len(joined) <= 2 * MAX_LINK_CHARS
    return "".join(joined.split()) if usable else ""


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:
        return ""
