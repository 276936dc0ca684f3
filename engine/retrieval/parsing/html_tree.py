"""`parse_html`: the tree that a browser makes of an HTML page, by the tree construction of the HTML standard.

Tags that are missing, superfluous or wrongly nested are read as every browser reads them: text between the
rows of a table, a paragraph that never ends, a comment `<!-->`. The parser is justhtml, which is written in
Python; pages that were made to take it long end at the bounds of the parser process.
"""

import re
from collections.abc import Iterator

from justhtml import JustHTML, Node, Template

_LINE_ENDS = re.compile("\r\n?")
_HEAD = 4_096
_XHTML = re.compile(r"\A\s*<\?xml|<html\s[^>]{0,500}\bxmlns\s*=", re.IGNORECASE)
_EMPTY_ELEMENT = re.compile(
    r"<([A-Za-z][^\s/<>\"']*+)((?:[^\"'<>/]++|\"[^\"<]*+\"|'[^'<]*+'|/(?!>))*+)/>"
)
_XML_DATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""Elements without content."""


class Element:
    """An element of a page.

    Attributes:
        name: in lower case.
        attributes: values by name in lower case; empty for those without a value.
        children: elements and texts, in their order. Comments and templates' content are left out.
    """

    __slots__ = ("attributes", "children", "name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        """Create one without content."""
        self.name, self.attributes = name, attributes
        self.children: list[Element | str] = []


def parse_html(markup: str) -> Element:
    """The tree of a page: an element without a name around `html`.

    In XHTML any element may be closed by `/>`, and CDATA sections are text.
    """
    markup = _LINE_ENDS.sub("\n", markup)
    if _XHTML.search(markup[:_HEAD]):
        markup = _XML_DATA.sub(
            lambda match: match[1].replace("&", "&amp;").replace("<", "&lt;"), markup
        )
        markup = _EMPTY_ELEMENT.sub(_expanded, markup)
    return _copied(JustHTML(markup, sanitize=False).root)


def _copied(document: Node) -> Element:
    root = Element("", {})
    waiting: list[tuple[Node, Element]] = [(document, root)]
    while waiting:
        node, into = waiting.pop()
        children = into.children
        for child in node.children or ():
            name = child.name
            if name == "#text":
                children.append(child.data)
            elif name[0] not in "#!":
                attributes = child.attrs
                element = Element(
                    name.lower(),
                    {key: value or "" for key, value in attributes.items()} if attributes else {},
                )
                children.append(element)
                shadow = isinstance(child, Template) and "shadowrootmode" in element.attributes
                if shadow and child.template_content is not None:
                    element.name = "div"
                    waiting.append((child.template_content, element))
                else:
                    waiting.append((child, element))
    return root


def _expanded(match: re.Match[str]) -> str:
    name, attributes = match[1], match[2]
    return match[0] if name.lower() in VOID else f"<{name}{attributes}></{name}>"


def elements(root: Element) -> Iterator[Element]:
    """The elements inside of an element, in their order."""
    waiting = [one for one in reversed(root.children) if isinstance(one, Element)]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += (one for one in reversed(element.children) if isinstance(one, Element))


def text_of(root: Element, most: int) -> str:
    """The first `most` characters of the text inside of an element. `most` bounds the cost, too."""
    parts: list[str] = []
    waiting: list[Element | str] = [root]
    left = cost = most
    while waiting and left > 0 and cost > 0:
        one = waiting.pop()
        cost -= 1
        if isinstance(one, str):
            parts.append(one[:left])
            left -= len(one)
        elif one.name not in ("script", "style", "template"):
            waiting += reversed(one.children[:cost])
    return "".join(parts)
