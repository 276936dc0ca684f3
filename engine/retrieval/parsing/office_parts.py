"""What the formats of Office Open XML have in common: relations between parts, and the document's title."""

from posixpath import join, normpath

from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip


def part_relations(archive: SafeZip, part: str) -> dict[str, tuple[str, str]]:
    """Kind and part of each relation of a part, by its id; of the package for an empty name.

    Relations to other files are left out.
    """
    folder, _, file = part.rpartition("/")
    found: dict[str, tuple[str, str]] = {}

    def start(name: str, attributes: Attributes) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            path = target[1:] if target.startswith("/") else normpath(join(folder, target))
            kind = attributes.get("Type", "").rpartition("/")[2]
            found[attributes.get("Id", "")] = (kind, path)

    data = archive.read_if_there(join(folder, "_rels", f"{file}.rels"))
    if data:
        read_xml(data, start=start)
    return found


def main_part(archive: SafeZip, default: str) -> str:
    """The part that is the document; `default` where the package does not say."""
    return next(iter(related_parts(archive, "", "officeDocument")), default)


def related_part(archive: SafeZip, part: str, kind: str, default: str) -> bytes:
    """The first part of a kind to which a part has a relation, or the default one; empty without one."""
    return archive.read_if_there(next(iter(related_parts(archive, part, kind)), default))


def related_parts(archive: SafeZip, part: str, kind: str) -> list[str]:
    """The parts of a kind to which a part has relations, as far as they are there."""
    relations = part_relations(archive, part).values()
    return [target for one, target in relations if one == kind and target in archive.names]


def core_title(archive: SafeZip) -> str | None:
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
