"""`OpenDocumentStyles`: what the styles of an OpenDocument file say about hidden text, lists and pages."""

from dataclasses import dataclass

from engine.retrieval.parsing.attribute_values import integer
from engine.retrieval.parsing.element_reader import ElementReader
from engine.retrieval.parsing.list_numbers import list_number
from engine.retrieval.parsing.safe_xml import Attributes

_BULLET = "-"
MAX_LEVEL = 10
"""Levels of lists and headings."""


@dataclass(slots=True)
class ListLevel:
    """A level of a list style.

    Attributes:
        form: of its numbers; empty for none.
        shown: how many levels of numbers stand before an item.
        start: the first number.
    """

    form: str = ""
    before: str = ""
    after: str = ""
    shown: int = 1
    start: int = 1
    bullet: bool = False


@dataclass(slots=True)
class _Style:
    """A style of paragraphs, text, sections, rows or pages."""

    parent: str = ""
    hidden: bool = False
    raised: bool | None = None
    page: str = ""


class OpenDocumentStyles(ElementReader):
    """Reads styles; those of `content.xml` add to those of `styles.xml`.

    Attributes:
        outline: the numbers before headings, by level from 1.
    """

    def __init__(self) -> None:
        super().__init__()
        self.outline: dict[int, ListLevel] = {}
        self._styles: dict[tuple[str, str], _Style] = {}
        self._lists: dict[str, dict[int, ListLevel]] = {}
        self._style = _Style()
        self._levels: dict[int, ListLevel] = {}
        self.handlers = {
            "style": self._begin_style,
            "text-properties": self._text_properties,
            "section-properties": self._text_properties,
            "drawing-page-properties": self._page_properties,
            "list-style": self._begin_list_style,
            "outline-style": self._begin_outline,
            "list-level-style-number": self._add_level,
            "outline-level-style": self._add_level,
            "list-level-style-bullet": self._add_bullet,
            "list-level-style-image": self._add_bullet,
        }

    def is_hidden(self, family: str, name: str) -> bool:
        """Whether what has this style is not shown."""
        return any(one.hidden for one in self._chain(family, name))

    def is_raised(self, name: str) -> bool:
        """Whether text of this style is in superscript."""
        chain = self._chain("text", name)
        return next((one.raised for one in chain if one.raised is not None), False)

    def is_title(self, name: str) -> bool:
        """Whether it is the style of a document's title, or is based on it."""
        return "Title" in self.lineage("paragraph", name)

    def list_levels(self, style: str) -> dict[int, ListLevel]:
        """The levels of a list style, from 1."""
        return self._lists.get(style, {})

    def master_pages(self) -> set[str]:
        """The pages to which paragraph styles switch."""
        return {one.page for one in self._styles.values() if one.page}

    def lineage(self, family: str, name: str) -> list[str]:
        """A style and those that it is based on."""
        found: list[str] = []
        while name and name not in found:
            found.append(name)
            one = self._styles.get((family, name))
            name = one.parent if one is not None else ""
        return found

    def _chain(self, family: str, name: str) -> list[_Style]:
        keys = ((family, one) for one in self.lineage(family, name))
        return [self._styles[key] for key in keys if key in self._styles]

    def _begin_style(self, attributes: Attributes) -> None:
        self._style = _Style(
            parent=attributes.get("parent-style-name", ""),
            page=attributes.get("master-page-name", ""),
        )
        self._styles[attributes.get("family", ""), attributes.get("name", "")] = self._style

    def _text_properties(self, attributes: Attributes) -> None:
        self._style.hidden = attributes.get("display") == "none"
        position = attributes.get("text-position")
        if position is not None:
            # `super`, or the share of the height by which it is raised or lowered.
            above = position.partition(" ")[0]
            self._style.raised = above == "super" or above.strip("%0.").isdecimal()

    def _page_properties(self, attributes: Attributes) -> None:
        self._style.hidden = attributes.get("visibility") == "hidden"

    def _begin_list_style(self, attributes: Attributes) -> None:
        self._levels = self._lists.setdefault(attributes.get("name", ""), {})

    def _begin_outline(self, _: Attributes) -> None:
        self._levels = self.outline

    def _add_level(self, attributes: Attributes) -> None:
        self._levels[integer(attributes, "level", 1)] = ListLevel(
            attributes.get("num-format", ""),
            attributes.get("num-prefix", ""),
            attributes.get("num-suffix", ""),
            integer(attributes, "display-levels", 1),
            integer(attributes, "start-value", 1),
        )

    def _add_bullet(self, attributes: Attributes) -> None:
        self._levels[integer(attributes, "level", 1)] = ListLevel(bullet=True)


def item_label(levels: dict[int, ListLevel], counters: dict[int, int], level: int) -> str:
    """What stands before an item or heading.

    Args:
        levels: of its list style.
        counters: the number of the last item on each level.
        level: its level, from 1.
    """
    here = levels.get(level, ListLevel())
    if here.bullet:
        return _BULLET
    if not here.form:
        return ""
    numbers = [
        list_number(counters.get(at, one.start), one.form)
        for at in range(max(1, level - here.shown + 1), level + 1)
        if (one := levels.get(at, ListLevel())).form
    ]
    return f"{here.before}{'.'.join(numbers)}{here.after}".strip()
