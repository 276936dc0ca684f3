"""`UserData`: the user's own collections and conversations, for an MCP server that the user's host started.

Clients of a server get none of this (`RetrievalService`): only `pravaha mcp`, whose standard input and output
belong to a program that the user runs.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from engine.conversations.storage.store import Store
    from engine.retrieval.api.passage import Passage
    from engine.retrieval.library.library import Library

Result = TypeVar("Result")

MAX_CONVERSATIONS = 200
"""Conversations that are listed, newest first."""


class UserData:
    """Opened on first use, by a thread of its own, on which everything happens. `close` it."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pravaha-user-data")
        self._resources = ExitStack()
        self._library: Library | None = None
        self._store: Store | None = None

    async def collections(self) -> list[dict[str, Any]]:
        """Name and size of each collection."""
        return await self._on_thread(self._collections)

    async def search(self, name: str, query: str, limit: int) -> list[dict[str, Any]]:
        """The passages of a collection that fit best.

        Raises:
            PravahaError: there is no such collection, or no embedding model.
        """
        return await self._on_thread(lambda: self._search(name, query, limit))

    async def documents(self, name: str) -> list[dict[str, Any]]:
        """The documents of a collection; raises as `search`."""
        return await self._on_thread(lambda: self._documents(name))

    async def conversations(self) -> list[dict[str, Any]]:
        """Id, title and size of the latest conversations, newest first."""
        return await self._on_thread(self._conversations)

    async def conversation(self, conversation_id: str) -> dict[str, Any] | None:
        """The messages on the open path of a conversation; None if there is no such one."""
        return await self._on_thread(lambda: self._conversation(conversation_id))

    def close(self) -> None:
        """Close what is open."""
        self._thread.submit(self._resources.close).result()
        self._thread.shutdown()

    async def _on_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.wrap_future(self._thread.submit(work))

    def _opened_library(self) -> "Library | None":
        from app.runtime.collections import has_collections, open_library

        if self._library is None and has_collections(self._settings):
            self._library = self._resources.enter_context(open_library(self._settings))
        return self._library

    def _opened_store(self) -> "Store | None":
        from engine.conversations.storage.store import Store

        if self._store is None and self._settings.conversations.exists():
            self._store = Store.open(self._settings.conversations)
            self._resources.callback(self._store.close)
        return self._store

    def _collections(self) -> list[dict[str, Any]]:
        library = self._opened_library()
        if library is None:
            return []
        found = []
        for record in library.collections():
            counts = library.counts(record)
            found.append(
                {"name": record.name, "documents": counts.documents, "chunks": counts.chunks}
            )
        return found

    def _search(self, name: str, query: str, limit: int) -> list[dict[str, Any]]:
        passages = self._required(name).open(name).search(query, k=limit)
        return [_passage_fields(one) for one in passages]

    def _documents(self, name: str) -> list[dict[str, Any]]:
        documents = self._required(name).open(name).documents()
        return [{"file": one.path, "title": one.title} for one in documents]

    def _required(self, name: str) -> "Library":
        library = self._opened_library()
        if library is None:
            raise PravahaError(
                f"There is no collection {name!r:.80}: `pravaha rag create` makes one."
            )
        return library

    def _conversations(self) -> list[dict[str, Any]]:
        store = self._opened_store()
        if store is None:
            return []
        return [
            {
                "id": one.id,
                "title": one.title,
                "updated_at": one.updated_at,
                "messages": one.messages,
            }
            for one in store.searches.trees()[:MAX_CONVERSATIONS]
        ]

    def _conversation(self, conversation_id: str) -> dict[str, Any] | None:
        store = self._opened_store()
        summary = None if store is None else store.trees.get(conversation_id)
        if store is None or summary is None:
            return None
        tree = store.trees.branch_tree(conversation_id)
        path = [tree[node_id] for node_id in tree.path(tree.head)]
        return {
            "id": summary.id,
            "title": summary.title,
            "updated_at": summary.updated_at,
            "messages": [{"role": node.kind.value, "content": node.text} for node in path],
        }


def _passage_fields(passage: "Passage") -> dict[str, Any]:
    return {
        "file": passage.file,
        "text": passage.shown_text,
        "score": passage.score,
        "page": passage.page,
        "line": passage.line,
    }
