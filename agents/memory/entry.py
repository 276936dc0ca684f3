"""`MemoryEntry`: an episode or a fact, and the scope that it belongs to."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agents.tools.tool import Taint

MAX_TEXT_CHARS = 20_000
MAX_PATH_CHARS = 200
TRUSTED = frozenset({Taint.TRUSTED})


class MemoryKind(StrEnum):
    """What an entry is."""

    EPISODE = "episode"
    FACT = "fact"


class ScopeKind(StrEnum):
    """Whom an entry belongs to."""

    USER = "user"
    PROJECT = "project"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Scope:
    """One owner of memories.

    Attributes:
        kind: user, project or agent.
        owner: the project's folder or the agent's key; empty for the user.
    """

    kind: ScopeKind
    owner: str = ""


USER = Scope(ScopeKind.USER)


@dataclass(frozen=True, slots=True)
class Episode:
    """What a run did.

    Attributes:
        task: what was asked.
        outcome: how it ended.
        plan: the steps that were taken.
        lesson: what to do differently.
        tokens: tokens computed.
        seconds: wall time.
        trace: id of the run, whose event log has the details.
    """

    task: str
    outcome: str
    plan: str = ""
    lesson: str = ""
    tokens: int = 0
    seconds: float = 0.0
    trace: str = ""

    @property
    def text(self) -> str:
        """What is searched and recalled."""
        parts = {
            "Task": self.task,
            "Plan": self.plan,
            "Outcome": self.outcome,
            "Lesson": self.lesson,
        }
        return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One version of one entry, immutable except for its redaction.

    Attributes:
        id: the same for all versions and in every process: a hash of scope and path, or of an episode's text.
        version: from 1.
        kind: episode or fact.
        scope: whom it belongs to.
        path: address of a fact, such as `build/command`; empty for an episode.
        text: what is recalled; empty once redacted.
        origin: who wrote it: `user`, an agent's key or a tool's name.
        taint: labels of what it was derived from.
        importance: 0 to 1.
        created: Unix seconds.
        redacted: whether the text was removed.
        data: further members of an episode.
    """

    id: str
    version: int
    kind: MemoryKind
    scope: Scope
    path: str
    text: str
    origin: str
    taint: frozenset[Taint]
    importance: float
    created: float
    redacted: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


def entry_fields(entry: MemoryEntry) -> dict[str, Any]:
    """The entry as JSON members."""
    return {
        "id": entry.id,
        "version": entry.version,
        "kind": entry.kind.value,
        "scope": entry.scope.kind.value,
        "owner": entry.scope.owner,
        "path": entry.path,
        "text": entry.text,
        "origin": entry.origin,
        "taint": sorted(entry.taint),
        "importance": entry.importance,
        "created": entry.created,
        "redacted": entry.redacted,
        **({"data": dict(entry.data)} if entry.data else {}),
    }


def stable_hash(*parts: str) -> str:
    """BLAKE2b of the parts, 96 bits in hexadecimal digits; Python's `hash` differs between processes."""
    encoded = json.dumps(parts, ensure_ascii=True).encode()
    return hashlib.blake2b(encoded, digest_size=12).hexdigest()
