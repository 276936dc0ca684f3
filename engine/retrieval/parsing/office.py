"""`read_xlsx`: the sheets of a workbook. No charts, comments or embedded objects are read."""

from posixpath import join, normpath

from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.text_builder import TextBuilder


def read_xlsx(archive: SafeZip, builder: TextBuilder) -> None:
    """Sheets with their names as headings; rows as lines with bars; formulas by their last value."""
    shared = _shared_strings(archive)
    sheets: list[tuple[str, str]] = []

    def start(name: str, attributes: Attributes) -> None:
        if name == "sheet":
            sheets.append((attributes.get("name", ""), attributes.get("id", "")))

    read_xml(archive.read("xl/workbook.xml"), start=start)
    targets = _relations(archive, "xl/workbook.xml")
    for title, relation in sheets:
        part = targets.get(relation, ("", ""))[1]
        if part in archive.names:
            builder.paragraph()
            if title:
                builder.heading(1, title)
                builder.add(title + "\n")
            reader = _SheetReader(builder, shared)
            read_xml(archive.read(part), start=reader.start, end=reader.end, text=reader.text)
    builder.title = _core_title(archive)


class _SheetReader:
    """Events of a sheet to text."""

    def __init__(self, builder: TextBuilder, shared: list[str]) -> None:
        self._builder, self._shared = builder, shared
        self._kind = ""
        self._value: list[str] | None = None
        self._row: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        """A start tag."""
        match name:
            case "row":
                self._row = []
            case "c":
                self._kind = attributes.get("t", "n")
            case "v" | "t":
                self._value = []

    def end(self, name: str) -> None:
        """An end tag."""
        if name in ("v", "t") and self._value is not None:
            self._row.append(self._shown("".join(self._value)))
            self._value = None
        elif name == "row" and any(self._row):
            self._builder.mark_break()
            self._builder.add(" | ".join(self._row) + "\n")

    def text(self, text: str) -> None:
        """Characters."""
        if self._value is not None:
            self._value.append(text)

    def _shown(self, value: str) -> str:
        if self._kind == "s":
            index = int(value) if value.isdigit() else -1
            value = self._shared[index] if 0 <= index < len(self._shared) else ""
        elif self._kind == "b":
            value = "TRUE" if value == "1" else "FALSE"
        return " ".join(value.split())


def _shared_strings(archive: SafeZip) -> list[str]:
    strings: list[str] = []
    parts: list[str] = []
    in_text = phonetic = False

    def start(name: str, attributes: Attributes) -> None:
        nonlocal parts, in_text, phonetic
        if name == "si":
            parts = []
        elif name == "rPh":
            phonetic = True
        in_text = name == "t" and not phonetic

    def end(name: str) -> None:
        nonlocal in_text, phonetic
        in_text = False
        if name == "rPh":
            phonetic = False
        elif name == "si":
            strings.append("".join(parts))

    def text(text: str) -> None:
        if in_text:
            parts.append(text)

    data = archive.read_if_there("xl/sharedStrings.xml")
    if data:
        read_xml(data, start=start, end=end, text=text)
    return strings


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
