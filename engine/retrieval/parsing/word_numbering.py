"""`WordNumbering`: counts the lists of a DOCX and says what stands before a paragraph: `3.2`, `a)`, `-`."""

import re
from dataclasses import dataclass, field

from engine.retrieval.parsing.attribute_values import integer
from engine.retrieval.parsing.element_reader import Closer, ElementReader, skipped
from engine.retrieval.parsing.list_numbers import list_number
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.word_styles import WordStyles, is_on

_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_BULLET = "-"


@dataclass(slots=True)
class _Level:
    """A level of a list.

    Attributes:
        start: its first number.
        form: how numbers are written.
        pattern: text with `%1` for the number of the first level.
        style: the paragraph style that is on this level.
        restart: it begins anew after levels up to this one, from 1; 0 for never. None for any above it.
        digits: numbers of levels above are written in digits, too.
        hidden: its numbers are.
    """

    start: int = 1
    form: str = "decimal"
    pattern: str = ""
    style: str = ""
    restart: int | None = None
    digits: bool = False
    hidden: bool = False


@dataclass(slots=True)
class _List:
    """The definition that lists share, with their common counters."""

    levels: dict[int, _Level] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)
    style_link: str = ""


@dataclass(slots=True)
class _Numbering:
    """A list: a definition with levels of its own or other beginnings.

    Attributes:
        begun: levels of `starts` that have had their first paragraph.
    """

    definition: str = ""
    levels: dict[int, _Level] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)


class WordNumbering(ElementReader):
    """Reads `numbering.xml`, then counts. Lists of one definition are counted together, as Word does."""

    def __init__(self, data: bytes, styles: WordStyles) -> None:
        """Read the part; without one nothing has a number."""
        super().__init__()
        self._styles = styles
        self._definitions: dict[str, _List] = {}
        self._lists: dict[str, _Numbering] = {}
        self._levels: dict[int, _Level] = {}
        self._level = _Level()
        self._list = _Numbering()
        self._definition = _List()
        self._override = 0
        self.handlers = {
            "abstractNum": self._begin_definition,
            "num": self._begin_list,
            "lvlOverride": self._begin_override,
            "lvl": self._begin_level,
            "abstractNumId": self._set_definition,
            "startOverride": self._set_start,
            "numStyleLink": self._set_style_link,
            "start": self._start_at,
            "numFmt": self._form,
            "lvlText": self._pattern,
            "pStyle": self._style,
            "lvlRestart": self._restart,
            "isLgl": self._digits,
            "vanish": self._vanish,
            "Choice": skipped,  # a form that only the newest programs know; the other one is beside it
        }
        self.read(data)

    def restart(self) -> None:
        """Count anew, for another part of the document."""
        for definition in self._definitions.values():
            definition.counters.clear()
        for one in self._lists.values():
            one.begun.clear()

    def next(self, list_id: str, level: int | None, style: str) -> str:
        """Count a paragraph, and say what stands before it.

        Args:
            list_id: of its list.
            level: in it, from 0; None for the one that names the paragraph's style.
            style: of the paragraph.
        """
        one = self._lists.get(list_id)
        definition = self._definition_of(one) if one is not None else None
        if one is None or definition is None:
            return ""
        levels = definition.levels | one.levels
        if level is None:
            by_style = {found.style: at for at, found in levels.items()}
            names = [name for name in self._styles.lineage(style) if name in by_style]
            level = by_style[names[0]] if names else 0
        here = levels.get(level)
        if here is None:
            return ""
        self._count(definition.counters, levels, level, one)
        if here.hidden:
            return ""
        if here.form == "bullet":
            return _BULLET

        def number(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            shown = levels.get(at, _Level())
            form = "decimal" if here.digits and at != level else shown.form
            if form == "none":
                return ""
            return list_number(definition.counters.get(at, shown.start), form)

        return _PLACE.sub(number, here.pattern).strip()

    @staticmethod
    def _count(
        counters: dict[int, int], levels: dict[int, _Level], level: int, one: _Numbering
    ) -> None:
        if level in one.starts and level not in one.begun:
            one.begun.add(level)  # only the first paragraph of the list begins anew
            counters[level] = one.starts[level]
        elif level in counters:
            counters[level] += 1
        else:
            counters[level] = levels[level].start
        for deeper in range(level + 1, _LEVELS):
            restart = levels[deeper].restart if deeper in levels else None
            if restart is None or level < restart:
                counters.pop(deeper, None)

    def _definition_of(self, one: _Numbering) -> _List | None:
        """The definition of a list; one that only names a list style is followed once."""
        definition = self._definitions.get(one.definition)
        if definition is not None and definition.style_link and not definition.levels:
            linked = self._lists.get(self._styles.numbering(definition.style_link)[0])
            return self._definitions.get(linked.definition) if linked is not None else None
        return definition

    def _begin_definition(self, attributes: Attributes) -> None:
        self._definition = _List()
        self._definitions[attributes.get("abstractNumId", "")] = self._definition
        self._levels = self._definition.levels

    def _begin_list(self, attributes: Attributes) -> None:
        self._list = _Numbering()
        self._lists[attributes.get("numId", "")] = self._list
        self._levels = self._list.levels

    def _begin_override(self, attributes: Attributes) -> None:
        self._override = integer(attributes, "ilvl", 0)

    def _begin_level(self, attributes: Attributes) -> Closer:
        self._level = _Level()
        self._levels[integer(attributes, "ilvl", 0)] = self._level

        def end() -> None:
            self._level = _Level()

        return end

    def _set_definition(self, attributes: Attributes) -> None:
        self._list.definition = attributes.get("val", "")

    def _set_start(self, attributes: Attributes) -> None:
        self._list.starts[self._override] = integer(attributes, "val", 1)

    def _set_style_link(self, attributes: Attributes) -> None:
        self._definition.style_link = attributes.get("val", "")

    def _start_at(self, attributes: Attributes) -> None:
        self._level.start = integer(attributes, "val", 1)

    def _form(self, attributes: Attributes) -> None:
        self._level.form = attributes.get("val", "decimal")

    def _pattern(self, attributes: Attributes) -> None:
        self._level.pattern = attributes.get("val", "")

    def _style(self, attributes: Attributes) -> None:
        self._level.style = attributes.get("val", "")

    def _restart(self, attributes: Attributes) -> None:
        self._level.restart = integer(attributes, "val", 0)

    def _digits(self, attributes: Attributes) -> None:
        self._level.digits = is_on(attributes)

    def _vanish(self, attributes: Attributes) -> None:
        self._level.hidden = is_on(attributes)
