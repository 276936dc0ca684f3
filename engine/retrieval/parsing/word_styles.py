"""`WordStyles`: what the styles of a DOCX say about headings, hidden text and lists."""

import re
from dataclasses import dataclass

from engine.retrieval.parsing.attribute_values import is_true
from engine.retrieval.parsing.element_reader import Closer, ElementReader, skipped
from engine.retrieval.parsing.safe_xml import Attributes

_HEADING = re.compile(
    r"(?:heading|[uü]?berschrift|kop|titre|titolo|t[ií]tulo|titlu|encabezado|rubrik|overskrift|otsikko|nagłówek"
    r"|nadpis|naslov|címsor|başlık|заголовок|επικεφαλίδα|標題|标题|見出し|제목|כותרת|عنوان)\s*([1-9])",
    re.IGNORECASE,
)
"""Names of heading styles. Word stores English ones and an outline level; other programs translate."""
_TITLES = frozenset(("title", "titel", "titre", "titolo", "título"))
_BODY_LEVEL = "9"


def is_on(attributes: Attributes) -> bool:
    """Whether an element that switches something on does so; without a value it does."""
    return is_true(attributes, "val", default=True)


def outline_level(attributes: Attributes) -> int:
    """The level of a heading by its outline level, 0 for text; without a number that makes sense 0."""
    value = attributes.get("val", "")
    return int(value) + 1 if len(value) == 1 and "0" <= value < _BODY_LEVEL else 0


@dataclass(slots=True)
class _Style:
    """A style as it is written; None where it leaves the choice to the style that it is based on."""

    name: str = ""
    based_on: str = ""
    level: int | None = None
    hidden: bool | None = None
    list_id: str | None = None
    list_level: int | None = None


class WordStyles(ElementReader):
    """Reads `styles.xml`; answers for a style what it inherits.

    Attributes:
        default: the style of a paragraph that names none.
    """

    def __init__(self, data: bytes) -> None:
        """Read the part; without one there are no styles."""
        super().__init__()
        self.default = ""
        self._styles: dict[str, _Style] = {}
        self._style = _Style()
        self.handlers = {
            "style": self._begin,
            "name": self._name,
            "basedOn": self._based_on,
            "outlineLvl": self._outline_level,
            "vanish": self._vanish,
            "numId": self._list_id,
            "ilvl": self._list_level,
            **dict.fromkeys(("tblStylePr", "rPrDefault", "latentStyles"), skipped),
        }
        self.read(data)

    def level(self, style: str) -> int:
        """The level of a heading, 0 for text."""
        for one in self._chain(style):
            if one.level is not None:
                return one.level
        for one in self._chain(style):
            match = _HEADING.fullmatch(one.name)
            if match:
                return int(match[1])
        own = self._styles.get(style)
        if own is not None:
            return int(own.name.lower() in _TITLES)
        match = _HEADING.fullmatch(style)  # a name where the style itself is missing
        return int(match[1]) if match else 0

    def hidden(self, style: str) -> bool:
        """Whether text of this style is hidden."""
        return next((one.hidden for one in self._chain(style) if one.hidden is not None), False)

    def numbering(self, style: str) -> tuple[str, int | None]:
        """The list of a paragraph style, or an empty id, and its level in it, if it says so."""
        chain = self._chain(style)
        list_id = next((one.list_id for one in chain if one.list_id is not None), "")
        level = next((one.list_level for one in chain if one.list_level is not None), None)
        return list_id, level

    def lineage(self, style: str) -> list[str]:
        """A style and those that it is based on."""
        found: list[str] = []
        while style in self._styles and style not in found:
            found.append(style)
            style = self._styles[style].based_on
        return found

    def _chain(self, style: str) -> list[_Style]:
        return [self._styles[one] for one in self.lineage(style)]

    def _begin(self, attributes: Attributes) -> Closer:
        identifier = attributes.get("styleId", "")
        self._style = _Style()
        self._styles[identifier] = self._style
        if attributes.get("type") == "paragraph" and is_true(attributes, "default"):
            self.default = identifier

        def end() -> None:
            self._style = _Style()

        return end

    def _name(self, attributes: Attributes) -> None:
        self._style.name = attributes.get("val", "")

    def _based_on(self, attributes: Attributes) -> None:
        self._style.based_on = attributes.get("val", "")

    def _outline_level(self, attributes: Attributes) -> None:
        self._style.level = outline_level(attributes)

    def _vanish(self, attributes: Attributes) -> None:
        self._style.hidden = is_on(attributes)

    def _list_id(self, attributes: Attributes) -> None:
        self._style.list_id = attributes.get("val", "")

    def _list_level(self, attributes: Attributes) -> None:
        value = attributes.get("val", "")
        self._style.list_level = int(value) if value.isdecimal() and len(value) == 1 else None
