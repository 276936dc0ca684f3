"""`Element`: the elements of HTML pages and of JSX, with lines, attributes and text.

HTML is read with the standard library's tolerant parser, JSX with tree-sitter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from agents.workspace.source_file import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
                  "track", "wbr"})  # fmt: skip
_MAX_DEPTH = 200
DYNAMIC = "\0"
"""The value of an attribute whose value only a running page knows."""


@dataclass(slots=True, eq=False)
class Element:
    """One element.

    Attributes:
        tag: lower case in HTML; as written in JSX.
        attributes: by lower-case name; empty for an attribute without a value, `DYNAMIC` for an
            expression.
        line: of its start tag, from 1.
        parent: None for a root.
        children: elements inside it.
        text: the text directly inside it.
        dynamic: whether some of its content is an expression.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    dynamic: bool = False

    def get(self, name: str) -> str | None:
        """An attribute's value, or None."""
        return self.attributes.get(name)

    def walk(self) -> Iterator["Element"]:
        """This element and all inside it, in document order."""
        stack = [self]
        while stack:
            one = stack.pop()
            yield one
            stack.extend(reversed(one.children))

    def ancestors(self) -> Iterator["Element"]:
        """The elements around it, the nearest first."""
        one = self.parent
        while one is not None:
            yield one
            one = one.parent

    def all_text(self) -> str:
        """The text inside it, and that of the alternatives of its images."""
        parts = [
            f"{one.text} {one.attributes.get('alt', '') if one.tag == 'img' else ''}"
            for one in self.walk()
        ]
        return " ".join(" ".join(parts).replace(DYNAMIC, "x").split())

    def is_dynamic(self) -> bool:
        """Whether some of the text inside it is an expression."""
        return any(one.dynamic for one in self.walk())


def elements_of(file: SourceFile) -> list[Element]:
    """The root elements of a page or of the JSX of a module; empty for other files."""
    if file.language == "html":
        parser = _Html()
        try:
            parser.feed(file.text)
            parser.close()
        except (AssertionError, ValueError, RecursionError):
            pass  # the standard library gives up on some malformed declarations
        return parser.roots
    if file.language in ("javascript", "tsx"):
        tree = file.tree
        return [] if tree is None else _jsx_roots(tree.root_node)
    return []


def all_elements(file: SourceFile) -> list[Element]:
    """All elements of a file, in document order."""
    return [one for root in elements_of(file) for one in root.walk()]


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.roots: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        parent = self._open[-1] if self._open else None
        attributes = {name.lower(): value or "" for name, value in reversed(attrs)}
        for name, value in attributes.items():
            if "{{" in value or "{%" in value or "<%" in value:
                attributes[name] = DYNAMIC if value.lstrip().startswith(("{", "<%")) else value
        one = Element(tag, attributes, self.getpos()[0], parent)
        (self.roots if parent is None else parent.children).append(one)
        if tag not in VOID and len(self._open) < _MAX_DEPTH:
            self._open.append(one)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._open and self._open[-1].tag == tag and tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data
            if "{{" in data or "{%" in data or "<%" in data:
                self._open[-1].dynamic = True


_JSX = {"jsx_element", "jsx_self_closing_element"}


def _jsx_roots(node: "Node") -> list[Element]:
    roots: list[Element] = []
    stack: list[tuple[Node, Element | None, int]] = [(node, None, 0)]
    while stack:
        one, parent, depth = stack.pop()
        if depth > _MAX_DEPTH:
            continue
        inside = parent
        if one.type in _JSX:
            inside = _jsx_element(one, parent)
            (roots if parent is None else parent.children).append(inside)
        elif parent is not None and one.type == "jsx_text" and one.text is not None:
            parent.text += one.text.decode("utf-8", "replace")
        elif parent is not None and one.type == "jsx_expression":
            parent.dynamic = True
        elif one.type in ("jsx_opening_element", "jsx_closing_element"):
            continue
        stack.extend((child, inside, depth + 1) for child in reversed(one.children))
    return roots


def _jsx_element(node: "Node", parent: Element | None) -> Element:
    opening = node if node.type == "jsx_self_closing_element" else node.child(0)
    name = None if opening is None else opening.child_by_field_name("name")
    tag = "" if name is None or name.text is None else name.text.decode("utf-8", "replace")
    attributes: dict[str, str] = {}
    for child in [] if opening is None else opening.children:
        if child.type != "jsx_attribute" or not child.children:
            continue
        key = (child.children[0].text or b"").decode("utf-8", "replace").lower()
        value = child.children[-1] if len(child.children) > 1 else None
        if value is None:
            attributes[key] = ""
        elif value.type == "string":
            attributes[key] = (value.text or b"").decode("utf-8", "replace")[1:-1]
        else:
            attributes[key] = DYNAMIC
    if "classname" in attributes:
        attributes["class"] = attributes["classname"]
    if "htmlfor" in attributes:
        attributes["for"] = attributes["htmlfor"]
    return Element(tag, attributes, node.start_point[0] + 1, parent)
