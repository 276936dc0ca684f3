"""`ToolDefinition`: a tool as its server describes it, its digest, and what changed between two of them."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.text.plain import visible

MAX_TOOLS = 100
"""Tools of one server; further ones are left out."""
MAX_DEFINITION_BYTES = 64_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a server says of a tool. All of it is data of a third party.

    Attributes:
        name: its name at the server.
        description: as it was sent.
        schema: JSON schema of the arguments.
        title: a name for people.
        output_schema: JSON schema of structured results, or None.
        annotations: hints such as `readOnlyHint`.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    title: str = ""
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """JSON members."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "schema": dict(self.schema),
            "output_schema": None if self.output_schema is None else dict(self.output_schema),
            "annotations": dict(self.annotations),
        }

    @property
    def digest(self) -> str:
        """Of all members: of what a model reads, what arguments are checked by, and the hints."""
        return hashlib.sha256(orjson.dumps(self.fields(), option=orjson.OPT_SORT_KEYS)).hexdigest()

    def shown(self) -> str:
        """The definition for a person, with invisible characters spelled out."""
        members = {
            name: value for name, value in self.fields().items() if value not in ("", None, {})
        }
        text = json.dumps(members, indent=2, ensure_ascii=False, sort_keys=True)
        # Line ends inside of texts, so that a diff of a long description shows what changed.
        return visible(text.replace("\\n", "\n      "))


def definition_from_fields(data: Mapping[str, Any]) -> ToolDefinition:
    """The inverse of `fields`."""
    return ToolDefinition(**data)


def refused_definition(definition: ToolDefinition) -> str:
    """Why a definition cannot be used at all; empty if it can."""
    if not _NAME.fullmatch(definition.name):
        return f"{visible(definition.name)!r:.80} is no name of a tool"
    try:
        size = len(orjson.dumps(definition.fields()))
    except (TypeError, ValueError):
        return f"the definition of {definition.name} nests too deep"
    if size > MAX_DEFINITION_BYTES:
        return (
            f"the definition of {definition.name} is larger than {MAX_DEFINITION_BYTES // 1000} kB"
        )
    return ""


@dataclass(frozen=True, slots=True)
class Changes:
    """How the tools that a server offers differ from those that were approved.

    Attributes:
        added: tools that were not approved.
        changed: approved and offered definition of tools that differ.
        removed: names of approved tools that are no longer offered.
    """

    added: tuple[ToolDefinition, ...] = ()
    changed: tuple[tuple[ToolDefinition, ToolDefinition], ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def need_approval(self) -> bool:
        """Whether something new would become callable."""
        return bool(self.added or self.changed)

    def shown(self) -> str:
        """What an approver reads: new tools in full, changed ones as a diff."""
        parts = [f"new tool {one.name}\n{one.shown()}" for one in self.added]
        for before, after in self.changed:
            lines = difflib.unified_diff(
                before.shown().splitlines(),
                after.shown().splitlines(),
                "approved",
                "offered now",
                lineterm="",
                n=2,
            )
            parts.append(f"changed tool {after.name}\n" + "\n".join(lines))
        parts += [f"removed tool {visible(name)}" for name in self.removed]
        return "\n\n".join(parts)


def changes_of(approved: Iterable[ToolDefinition], offered: Iterable[ToolDefinition]) -> Changes:
    """The differences, in the order in which the tools are offered."""
    known = {one.name: one for one in approved}
    now = {one.name: one for one in offered}
    return Changes(
        added=tuple(one for one in now.values() if one.name not in known),
        changed=tuple(
            (known[one.name], one)
            for one in now.values()
            if one.name in known and known[one.name].digest != one.digest
        ),
        removed=tuple(name for name in known if name not in now),
    )
