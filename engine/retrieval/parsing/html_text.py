"""`extract_html`: the text of an HTML document that its reader sees, with its headings.

Navigation is left out. If the document marks its main part (`<main>` or `role="main"`), only that is kept,
below the heading of the page.
"""

from collections.abc import Callable, Sequence

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_hidden import HiddenParts, is_hidden
from engine.retrieval.parsing.html_renderer import HtmlRenderer
from engine.retrieval.parsing.html_tabs import Tabs
from engine.retrieval.parsing.html_tree import Element, elements, parse_html, text_of
from engine.retrieval.parsing.outline import MAX_TITLE
from engine.retrieval.parsing.text_builder import TextBuilder

_NOT_ABOUT_THE_PAGE = frozenset("aside dialog footer nav search svg template".split())  # noqa: SIM905
_TITLE_WITHIN = 2_000
"""Elements among which the title of a page is looked for."""


def extract_html(markup: str, most: int, *, mail: bool = False) -> Extracted:
    """The text of an HTML document.

    Args:
        markup: the document.
        most: characters of text.
        mail: whether it is the body of a mail.

    Raises:
        TextTooLong: it has more text.
    """
    return tree_text(parse_html(markup), most, mail=mail)


def tree_text(
    tree: Element, most: int, *, mail: bool = False, link: Callable[[str], str] | None = None
) -> Extracted:
    """The same of a document that has been parsed; `link` is that of `HtmlRenderer`."""
    parts = [] if mail else _main_parts(tree)
    found = Extracted("")
    title, tabs = _title(tree), Tabs(tree)
    rounds = [(parts, False)] if parts else []
    for roots, fallbacks in (*rounds, ([tree], False), ([tree], True)):
        builder = TextBuilder(most)
        builder.title = title
        hidden = HiddenParts(tree, mail=mail, shown=fallbacks)
        HtmlRenderer(builder, hidden, tabs, fallbacks=fallbacks, link=link).render(roots)
        found = builder.extracted()
        if found.text.strip():
            break
    return found


def _title(tree: Element) -> str | None:
    for _, element in zip(range(_TITLE_WITHIN), elements(tree), strict=False):
        if element.name == "svg":
            return None
        if element.name == "title":
            return " ".join(text_of(element, 4 * MAX_TITLE).split()) or None
    return None


def _main_parts(tree: Element) -> Sequence[Element]:
    """The main parts, and before them the page's heading if it stands outside; empty if none is marked."""
    parts: list[Element] = []
    heading: Element | None = None
    waiting = [tree]
    while waiting:
        element = waiting.pop()
        if element.name == "main" or element.attributes.get("role") == "main":
            parts.append(element)
        elif element.name == "h1" and not is_hidden(element):
            heading = heading or element
        elif element.name not in _NOT_ABOUT_THE_PAGE:
            waiting += (one for one in reversed(element.children) if isinstance(one, Element))
    parts = [one for one in parts if not is_hidden(one)] or parts
    has_heading = any(inner.name == "h1" for part in parts for inner in elements(part))
    return [heading, *parts] if parts and heading is not None and not has_heading else parts
