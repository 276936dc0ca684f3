"""The tool `memory`: recall, store, list and forget. Without embeddings: it searches words.

A stored text carries the labels of everything that its run has read. What is recalled keeps its labels, so
that a text from the web stays untrusted after a detour through the memory. Forgetting needs an approval.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents.memory.entry import (
    MAX_PATH_CHARS,
    TRUSTED,
    USER,
    MemoryEntry,
    Scope,
    ScopeKind,
    entry_fields,
)
from agents.memory.recall import recall
from agents.memory.render import render_memories
from agents.memory.store import MemoryStore
from agents.tools.tool import Effect, Taint, Tool, ToolContext, ToolOutput

_NEEDED = {"recall": "query", "store": "text", "list": None, "forget": "id"}


class MemoryArguments(BaseModel):
    """Arguments of the tool.

    Attributes:
        action: what to do.
        query: words to recall by.
        text: what to store.
        path: address of the fact to store, such as `build/command`.
        id: the entry to forget, as `recall` and `list` return it.
        scope: whose memory; None recalls and lists all that the agent may see, and stores for the project.
        importance: of what is stored.
    """

    model_config = ConfigDict(extra="forbid")

    action: Literal["recall", "store", "list", "forget"]
    query: str = Field("", max_length=1000)
    text: str = Field("", max_length=4000)
    path: str = Field("", max_length=MAX_PATH_CHARS, json_schema_extra={"format": "address"})
    id: str = Field("", pattern=r"^(?:[0-9a-f]{24})?$")
    scope: Literal["user", "project", "agent"] | None = None
    importance: float = Field(0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _complete(self) -> "MemoryArguments":
        needed = _NEEDED[self.action]
        if needed is not None and not getattr(self, needed).strip():
            raise ValueError(f"{self.action} needs {needed}")
        if self.action == "store" and not self.path.strip():
            raise ValueError("store needs path")
        return self


def project_scope(folder: Path) -> Scope:
    """The scope of the project in a folder."""
    return Scope(ScopeKind.PROJECT, str(folder.resolve()))


def memory_tool(path: Callable[[], Path] | None = None) -> Tool:
    """The tool over the database at `path()`, by default the run's own, which is opened for each call."""

    async def call(arguments: MemoryArguments, context: ToolContext) -> ToolOutput:
        database = context.memory if path is None else path()
        if database is None:
            return ToolOutput("There is no memory in this run.", failed=True)
        return await asyncio.to_thread(_act, database, arguments, context)

    return Tool(
        name="memory",
        description="Recall, store, list or forget facts of the user, the project or this agent.",
        arguments=MemoryArguments,
        effects=frozenset({Effect.READ}),
        call=call,
        needs_approval=lambda arguments: arguments.action == "forget",
        asks_when_untrusted=_outlasts_the_project,
        target=lambda arguments: f"{arguments.action} {arguments.path or arguments.id}".strip(),
    )


def _outlasts_the_project(arguments: MemoryArguments) -> bool:
    """Whether a call changes what runs over other projects remember, or takes memories away."""
    return arguments.action == "forget" or (
        arguments.action == "store" and arguments.scope == "user"
    )


def _act(path: Path, arguments: MemoryArguments, context: ToolContext) -> ToolOutput:
    own = {
        "user": USER,
        "project": project_scope(context.root),
        "agent": Scope(ScopeKind.AGENT, context.agent),
    }
    scopes = [own[arguments.scope]] if arguments.scope else list(own.values())
    with MemoryStore(path) as store:
        match arguments.action:
            case "recall":
                result = recall(store, arguments.query, scopes=scopes, now=time.time())
                return _listed(
                    [one.entry for one in result.memories], "Nothing is remembered about that."
                )
            case "list":
                return _listed(store.entries(scopes, limit=50), "Nothing is remembered.")
            case "forget":
                return _forget(store, arguments.id, scopes)
            case "store":
                scope = own[arguments.scope or "project"]
                if Taint.UNTRUSTED in context.taint and _is_trusted(store, arguments.path, scope):
                    return ToolOutput(
                        f"{arguments.path} is a fact from a trusted source; this run has read untrusted "
                        "text and cannot replace it. Choose another path.",
                        failed=True,
                    )
                written = store.store_fact(
                    arguments.path,
                    arguments.text,
                    scope=scope,
                    origin=context.agent or "tool",
                    taint=context.taint,
                    importance=arguments.importance,
                )
    entry = written.entry
    text = f"{'Known already' if written.duplicate else 'Stored'}: {entry.path}, version {entry.version}."
    if written.removed:
        text += f" Removed before storing: {', '.join(written.removed)}."
    return ToolOutput(
        text,
        data={
            "entry": entry_fields(entry),
            "duplicate": written.duplicate,
            "removed": list(written.removed),
        },
    )


def _is_trusted(store: MemoryStore, path: str, scope: Scope) -> bool:
    """Whether the latest fact at this path was stored by a run that had read nothing untrusted."""
    fact = store.fact_at(path, scope)
    return fact is not None and Taint.UNTRUSTED not in fact.taint


def _listed(entries: list[MemoryEntry], nothing: str) -> ToolOutput:
    return ToolOutput(
        render_memories(entries) or nothing,
        data={"entries": [entry_fields(entry) for entry in entries]},
        taint=frozenset().union(TRUSTED, *(entry.taint for entry in entries)),
        choices={"id": tuple(entry.id for entry in entries)},
    )


def _forget(store: MemoryStore, key: str, scopes: list[Scope]) -> ToolOutput:
    """Forget an entry of the agent's scopes; others do not exist for it."""
    known = [entry for entry in store.history(key) if entry.scope in scopes]
    if not known:
        return ToolOutput(f"There is no memory {key}.", failed=True)
    forgotten = store.forget([key])
    return ToolOutput(f"Forgot {known[-1].path or key}.", data={"forgotten": forgotten.entries})
