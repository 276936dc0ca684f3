"""`OfficePackage`: the parts of an Office Open XML document and their relations."""

from posixpath import join, normpath
from typing import NamedTuple

from engine.retrieval.parsing.document_title import document_title
from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip


class Relation(NamedTuple):
    """What a part refers to: the last word of the relation's type, and a part."""

    kind: str
    part: str


class OfficePackage:
    """Finds parts by their relations; only parts that are there are returned."""

    def __init__(self, archive: SafeZip) -> None:
        self._archive = archive
        self._relations: dict[str, dict[str, Relation]] = {}

    def read(self, part: str) -> bytes:
        """A part, or nothing if there is none of this name."""
        return self._archive.read_if_there(part)

    def main_part(self, default: str) -> str:
        """The part that is the document; `default` where the package does not say."""
        return self.related("", "officeDocument", default) or default

    def relations(self, part: str) -> dict[str, Relation]:
        """All relations of a part by their ids; those of the package itself for an empty name."""
        if part not in self._relations:
            self._relations[part] = self._read_relations(part)
        return self._relations[part]

    def target(self, part: str, identifier: str) -> str:
        """The part that a part refers to by this id, or an empty name."""
        relation = self.relations(part).get(identifier)
        return relation.part if relation is not None else ""

    def related(self, part: str, kind: str, default: str = "") -> str:
        """The first part of a kind that a part refers to, or `default` if it is there, or an empty name.

        Args:
            part: the part that refers.
            kind: the last word of the relation's type; it is the same in strict and transitional documents.
            default: where programs put such a part; for documents without a list of relations.
        """
        found = self.all_related(part, kind)
        if found:
            return found[0]
        return default if default in self._archive.names else ""

    def all_related(self, part: str, kind: str) -> list[str]:
        """The parts of a kind that a part refers to."""
        return [one.part for one in self.relations(part).values() if one.kind == kind]

    def title(self) -> str | None:
        """The title in the document's properties."""
        return document_title(self.read(self.related("", "core-properties", "docProps/core.xml")))

    def _read_relations(self, part: str) -> dict[str, Relation]:
        folder, _, file = part.rpartition("/")
        found: dict[str, Relation] = {}

        def start(name: str, attributes: Attributes) -> None:
            if name == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                path = target[1:] if target.startswith("/") else normpath(join(folder, target))
                if path in self._archive.names:
                    kind = attributes.get("Type", "").rpartition("/")[2]
                    found[attributes.get("Id", "")] = Relation(kind, path)

        data = self.read(join(folder, "_rels", f"{file}.rels"))
        if data:
            read_xml(data, start=start)
        return found
