"""`rag_search`: passages of the user's collections. Off where there is no collection.

Collections hold documents of any folder, so what it returns is untrusted and local, like files, and private
if a passage holds private data.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.text.plain import plain
from agents.tools.arguments import Arguments
from agents.tools.bounded_text import bounded
from agents.tools.sensitive import FILE_TAINT, file_taint
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput
from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.answering.prompt import passage_block
from engine.retrieval.api.passage import Passage

if TYPE_CHECKING:
    from engine.retrieval.library.library import Library

OFF = (
    "rag_search is off: there is no collection; create one with `pravaha rag create NAME` and add documents "
    "to it."
)
SEARCH_S = 60.0
MAX_PASSAGES = 20


class RagSearchArguments(Arguments):
    """A question or words, and the collection to search; the only one if none is named."""

    query: str = Field(min_length=1, max_length=2_000)
    collection: str | None = Field(default=None, max_length=64)
    k: int = Field(default=5, ge=1, le=MAX_PASSAGES)


class OpenLibrary(Protocol):
    """Opens the user's collections for one search."""

    def __call__(self) -> "AbstractContextManager[Library]":
        """The library, closed at the end of the block."""


def rag_search_tool(
    open_library: OpenLibrary | None = None,
    *,
    asks: Callable[[Any], bool] = lambda arguments: False,
) -> Tool:
    """The tool for a library; without one it is unavailable and says how to turn it on.

    Args:
        open_library: opens the collections.
        asks: whether a call needs an approval, by its arguments.
    """

    async def call(arguments: Any, context: ToolContext) -> ToolOutput:
        if open_library is None:
            raise InvalidTask(OFF)
        return await asyncio.to_thread(_search, open_library, arguments)

    return Tool(
        name="rag_search",
        description="Find passages in the user's document collections.",
        arguments=RagSearchArguments,
        effects=frozenset({Effect.READ}),
        call=call,
        timeout_s=SEARCH_S,
        needs_approval=asks,
        target=lambda arguments: arguments.query,
        unavailable="" if open_library is not None else OFF,
    )


def _search(open_library: OpenLibrary, arguments: Any) -> ToolOutput:
    with open_library() as library:
        names = [one.name for one in library.collections()]
        name = _chosen(arguments.collection, names)
        passages = library.open(name).search(arguments.query, k=arguments.k)
    labels = {
        label for one in passages for label in file_taint(one.shown_text, Path(one.file).name)
    }
    return ToolOutput(
        bounded(passage_block(number_passages(passages))) if passages else "No passage fits.",
        data={"collection": name, "passages": [_fields(one) for one in passages]},
        taint=FILE_TAINT | labels,
        choices={"collection": tuple(names)},
    )


def _chosen(wanted: str | None, names: list[str]) -> str:
    """The collection to search.

    Raises:
        InvalidTask: it does not exist, or there are several and none is named.
    """
    known = ", ".join(names)
    if not names:
        raise InvalidTask(OFF)
    if wanted is None and len(names) > 1:
        raise InvalidTask(f"There are several collections: name one of {known}.")
    if wanted is not None and wanted not in names:
        raise InvalidTask(f"There is no collection {wanted!r:.80}: the collections are {known}.")
    return wanted or names[0]


def _fields(passage: Passage) -> dict[str, Any]:
    return {
        "file": passage.file,
        "start": passage.start,
        "end": passage.end,
        "line": passage.line,
        "page": passage.page,
        "headings": list(passage.heading_path),
        "text": plain(passage.shown_text),
        "score": passage.score,
    }
