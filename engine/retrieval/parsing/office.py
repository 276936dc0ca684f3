"""Readers of DOCX, PPTX and OpenDocument text: XML in a ZIP archive.

They take out text, headings, tables and slides, and nothing else: no formulas, charts, comments or
embedded objects.
"""

import re
from posixpath import join, normpath

from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.text_builder import TextBuilder

_HEADING_STYLE = re.compile(
    r"(?:heading|berschrift|titre|titolo|ttulo|rubrik|kop)\s*(\d)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+")


def read_docx(archive: SafeZip, builder: TextBuilder) -> None:
    """Paragraphs, headings by their style or outline level, tables row by row, foot- and endnotes."""
    styles = _heading_styles(archive)
    for part in ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml"):
        data = archive.read_if_there(part)
        if data:
            builder.paragraph()
            reader = _WordReader(builder, styles)
            read_xml(data, start=reader.start, end=reader.end, text=reader.text)
    builder.title = _core_title(archive)


def _heading_styles(archive: SafeZip) -> dict[str, int]:
    """Level of each paragraph style that is a heading."""
    levels: dict[str, int] = {}
    style = ""

    def start(name: str, attributes: Attributes) -> None:
        nonlocal style
        if name == "style":
            style = attributes.get("styleId", "")
        elif name == "name" and style:
            match = _HEADING_STYLE.match(attributes.get("val", ""))
            if match:
                levels[style] = int(match[1])
            elif attributes.get("val", "").lower() == "title":
                levels[style] = 1
        elif name == "outlineLvl" and style and attributes.get("val", "").isdigit():
            levels.setdefault(style, int(attributes["val"]) + 1)

    data = archive.read_if_there("word/styles.xml")
    if data:
        read_xml(data, start=start)
    return levels


class _WordReader:
    """Events of a part of a DOCX to text."""

    def __init__(self, builder: TextBuilder, styles: dict[str, int]) -> None:
        self._builder, self._styles = builder, styles
        self._in_text = False
        self._cells = 0
        self._level = 0
        self._begin = 0
        self._said: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        """A start tag."""
        match name:
            case "t":
                self._in_text = True
            case "tab":
                self._put("\t")
            case "br" | "cr":
                self._put("\n")
            case "p":
                self._level, self._begin, self._said = 0, len(self._builder), []
            case "pStyle":
                value = attributes.get("val", "")
                match = _HEADING_STYLE.match(value)
                self._level = self._styles.get(value, int(match[1]) if match else 0)
            case "outlineLvl" if attributes.get("val", "").isdigit():
                self._level = min(int(attributes["val"]), 9) % 9 + (attributes["val"] != "9")
            case "tc":
                self._cells += 1
                if self._cells > 1 and not self._builder.at_line_start:
                    self._builder.add(" | ")
            case "tr":
                self._cells = 0
            case "tbl":
                self._builder.paragraph()

    def end(self, name: str) -> None:
        """An end tag."""
        match name:
            case "t":
                self._in_text = False
            case "p":
                title = " ".join("".join(self._said).split())
                if self._level and title:
                    self._builder.heading(self._level, title, self._begin)
                if not self._cells:
                    self._builder.paragraph()
                elif not self._builder.at_line_start:
                    self._builder.add(" ")
            case "tr":
                self._builder.line()
            case "tbl":
                self._cells = 0
                self._builder.paragraph()

    def text(self, text: str) -> None:
        """Characters."""
        if self._in_text:
            self._put(text)

    def _put(self, text: str) -> None:
        self._builder.add(text)
        self._said.append(text)


def read_odt(archive: SafeZip, builder: TextBuilder) -> None:
    """Paragraphs, headings and tables of an OpenDocument text, presentation or table."""
    depth = 0
    level, begin, said = 0, 0, list[str]()
    in_cell = False

    def put(text: str) -> None:
        if depth:
            builder.add(text)
            said.append(text)

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth, level, begin, said, in_cell
        match name:
            case "h" | "p":
                depth += 1
                value = attributes.get("outline-level", "1")
                level = int(value) if name == "h" and value.isdigit() else 0
                begin, said = len(builder), []
            case "tab":
                put("\t")
            case "line-break":
                put("\n")
            case "s":
                count = attributes.get("c", "1")
                put(" " * min(int(count) if count.isdigit() else 1, 64))
            case "table-cell":
                in_cell = True
                if not builder.at_line_start:
                    builder.add(" | ")
            case "page":
                builder.paragraph()
                builder.mark_page()

    def end(name: str) -> None:
        nonlocal depth, in_cell
        match name:
            case "h" | "p":
                depth = max(0, depth - 1)
                title = " ".join("".join(said).split())
                if level and title:
                    builder.heading(level, title, begin)
                if in_cell:
                    put(" ")
                else:
                    builder.paragraph()
            case "table-cell":
                in_cell = False
            case "table-row":
                builder.line()
            case "table":
                builder.paragraph()

    read_xml(archive.read("content.xml"), start=start, end=end, text=put)


def read_pptx(archive: SafeZip, builder: TextBuilder) -> None:
    """Slides in their order, each a page, with its title as a heading; then its notes."""
    slides = _by_number(archive, r"ppt/slides/slide\d+\.xml")
    order = _slide_order(archive)
    slides.sort(key=lambda name: order.get(name, len(order)))
    for number, name in enumerate(slides, 1):
        builder.paragraph()
        builder.mark_page()
        start = len(builder)
        reader = _SlideReader(builder)
        read_xml(archive.read(name), start=reader.start, end=reader.end, text=reader.text)
        builder.heading(1, reader.title or f"Slide {number}", start)
        notes = _related(archive, name, "notesSlide")
        if notes:
            reader = _SlideReader(builder)
            read_xml(archive.read(notes[0]), start=reader.start, end=reader.end, text=reader.text)
    builder.title = _core_title(archive)


class _SlideReader:
    """Events of a slide to text."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._in_text, self._in_title = False, False
        self._said: list[str] = []

    @property
    def title(self) -> str:
        """The text of the title's placeholder."""
        return " ".join("".join(self._said).split())

    def start(self, name: str, attributes: Attributes) -> None:
        """A start tag."""
        match name:
            case "t":
                self._in_text = True
            case "ph":
                self._in_title = attributes.get("type") in ("title", "ctrTitle")
            case "sp":
                self._in_title = False
            case "br":
                self._builder.add("\n")
            case "tc" if not self._builder.at_line_start:
                self._builder.add(" | ")

    def end(self, name: str) -> None:
        """An end tag."""
        match name:
            case "t":
                self._in_text = False
            case "p":
                self._builder.line()
                if self._in_title:
                    self._said.append(" ")
            case "sp" | "tbl":
                self._builder.paragraph()

    def text(self, text: str) -> None:
        """Characters."""
        if self._in_text:
            self._builder.add(text)
            if self._in_title:
                self._said.append(text)


def _slide_order(archive: SafeZip) -> dict[str, int]:
    """Position of each slide's part, from the presentation's list."""
    listed: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        if name == "sldId":
            listed.append(attributes.get("id", ""))

    read_xml(archive.read("ppt/presentation.xml"), start=start)
    targets = _relations(archive, "ppt/presentation.xml")
    return {targets[one][1]: index for index, one in enumerate(listed) if one in targets}


def _by_number(archive: SafeZip, pattern: str) -> list[str]:
    names = [name for name in archive.names if re.fullmatch(pattern, name)]
    return sorted(names, key=lambda name: int(_NUMBER.findall(name)[-1]))


def _relations(archive: SafeZip, part: str) -> dict[str, tuple[str, str]]:
    """Kind and part of each relation of a part, by its id."""
    folder, _, file = part.rpartition("/")
    found: dict[str, tuple[str, str]] = {}

    def start(name: str, attributes: Attributes) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            path = target[1:] if target.startswith("/") else normpath(join(folder, target))
            kind = attributes.get("Type", "").rpartition("/")[2]
            found[attributes.get("Id", "")] = (kind, path)

    data = archive.read_if_there(f"{folder}/_rels/{file}.rels")
    if data:
        read_xml(data, start=start)
    return found


def _related(archive: SafeZip, part: str, kind: str) -> list[str]:
    relations = _relations(archive, part).values()
    return [target for one, target in relations if one == kind and target in archive.names]


def _core_title(archive: SafeZip) -> str | None:
    """The title in the document's properties."""
    parts: list[str] = []
    inside = False

    def start(name: str, attributes: Attributes) -> None:
        nonlocal inside
        inside = name == "title"

    def end(name: str) -> None:
        nonlocal inside
        inside = False

    def text(text: str) -> None:
        if inside:
            parts.append(text)

    data = archive.read_if_there("docProps/core.xml")
    if data:
        read_xml(data, start=start, end=end, text=text)
    return "".join(parts).strip() or None
