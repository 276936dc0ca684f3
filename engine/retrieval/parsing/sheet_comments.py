"""`read_comments`: the comments and notes on cells of an Office Open XML sheet."""

from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes, read_xml


def read_comments(package: OfficePackage, sheet: str, workbook: str) -> list[str]:
    """One line for each comment, in the order of the file: its cell, who wrote it, and what.

    Args:
        package: the file.
        sheet: the sheet's part.
        workbook: the workbook's part, whose relations name the authors of threads.
    """
    persons: dict[str, str] = {}
    for part in package.all_related(workbook, "person"):
        persons |= _persons(package.read(part))
    found: list[tuple[str, str, str]] = []
    for part in package.all_related(sheet, "threadedComment"):
        found += _threads(package.read(part), persons)
    threaded = {cell for cell, _, _ in found}  # each of them has a note, too, for older programs
    for part in package.all_related(sheet, "comments"):
        found += (one for one in _notes(package.read(part)) if one[0] not in threaded)
    return [comment_line(*one) for one in found if one[2].strip()]


def comment_line(cell: str, author: str, text: str) -> str:
    """A comment as it is read, on one line."""
    by = f" by {' '.join(author.split())}" if author.strip() else ""
    return f"Comment on {cell}{by}: {' '.join(text.split())}"


def _persons(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}

    def start(name: str, attributes: Attributes) -> None:
        if name == "person":
            found[attributes.get("id", "")] = attributes.get("displayName", "")

    read_xml(data, start=start)
    return found


def _threads(data: bytes, persons: dict[str, str]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    cell = author = ""
    parts: list[str] | None = None

    def start(name: str, attributes: Attributes) -> None:
        nonlocal cell, author, parts
        if name == "threadedComment":
            cell = attributes.get("ref", "")
            author = persons.get(attributes.get("personId", ""), "")
        elif name == "text":
            parts = []

    def end(name: str) -> None:
        nonlocal parts
        if name == "text" and parts is not None:
            found.append((cell, author, "".join(parts)))
            parts = None

    def text(text: str) -> None:
        if parts is not None:
            parts.append(text)

    read_xml(data, start=start, end=end, text=text)
    return found


def _notes(data: bytes) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    authors: list[str] = []
    cell = author = ""
    phonetic = False
    parts: list[str] = []
    reading: list[str] | None = None

    def start(name: str, attributes: Attributes) -> None:
        nonlocal cell, author, parts, reading, phonetic
        match name:
            case "author":
                reading = []
            case "comment":
                cell, parts = attributes.get("ref", ""), []
                index = attributes.get("authorId", "")
                known = index.isdecimal() and len(index) < 7 and int(index) < len(authors)
                author = authors[int(index)] if known else ""
            case "rPh":
                phonetic = True
            case "t" if not phonetic:
                reading = parts

    def end(name: str) -> None:
        nonlocal reading, phonetic
        if name == "author":
            authors.append("".join(reading or []))
        elif name == "comment":
            # Excel puts the author's name on the first line, too.
            found.append((cell, author, "".join(parts).strip().removeprefix(f"{author}:")))
        elif name == "rPh":
            phonetic = False
        if name in ("author", "t"):
            reading = None

    def text(text: str) -> None:
        if reading is not None:
            reading.append(text)

    read_xml(data, start=start, end=end, text=text)
    return found
