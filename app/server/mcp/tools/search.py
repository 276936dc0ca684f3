"""The tools `search` and `list_collections`: passages of indexed documents."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from app.server.mcp.collections import find_collection, known_collections
from app.server.mcp.tool import Arguments, Output, Tool, ToolCall

DEFAULT_RESULTS = 8
MAX_RESULTS = 50


class NoArguments(Arguments):
    """Nothing."""


class SearchArguments(Arguments):
    """Where to search, and for what."""

    collection: Annotated[
        str, Field(min_length=1, description="Name or id, as `list_collections` shows them.")
    ]
    query: Annotated[str, Field(min_length=1, description="Words, a sentence or a question.")]
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="The most passages.")] = (
        DEFAULT_RESULTS
    )


class FoundPassage(BaseModel):
    """A passage of a document."""

    file: str
    text: str
    score: Annotated[float, Field(description="How well it fits; comparable within one search.")]
    page: int | None = None
    line: int | None = None


class FoundPassages(Output):
    """Passages, best first."""

    collection: str
    passages: list[FoundPassage]

    @property
    def text(self) -> str:
        """The passages with their numbers and places, as a model cites them."""
        if not self.passages:
            return f"Nothing in {self.collection} fits."
        return "\n\n".join(
            f"[{number}] {_place(one)}\n{one.text}"
            for number, one in enumerate(self.passages, start=1)
        )


class CollectionSummary(BaseModel):
    """A collection."""

    id: str
    name: str
    documents: Annotated[int, Field(description="How many documents can be found.")]


class Collections(Output):
    """The collections that can be searched."""

    collections: list[CollectionSummary]


async def search(call: ToolCall, given: SearchArguments) -> FoundPassages:
    """Search a collection."""
    collection = await find_collection(call.api, call.user, given.collection)
    if collection.own and call.user is not None:
        found = await call.user.search(collection.name, given.query, given.limit)
    else:
        body = {"query": given.query, "max_num_results": given.limit}
        answer = await call.api.post(f"/v1/vector_stores/{collection.id}/search", body)
        found = [_fields(one) for one in answer["data"]]
    return FoundPassages(
        collection=collection.name or collection.id,
        passages=[FoundPassage.model_validate(one) for one in found],
    )


async def list_collections(call: ToolCall, _: NoArguments) -> Collections:
    """List the collections."""
    known = await known_collections(call.api, call.user)
    return Collections(
        collections=[
            CollectionSummary(id=one.id, name=one.name, documents=one.documents) for one in known
        ]
    )


def _fields(result: dict[str, Any]) -> dict[str, Any]:
    text = "\n".join(part["text"] for part in result["content"])
    place = {"page": result.get("page"), "line": result.get("line")}
    return {"file": result["filename"], "text": text, "score": result["score"], **place}


def _place(passage: FoundPassage) -> str:
    page = "" if passage.page is None else f", page {passage.page}"
    line = "" if passage.line is None or passage.page is not None else f", line {passage.line}"
    return f"{passage.file}{page}{line}"


SEARCH = Tool(
    "search",
    "Search documents",
    "Find the passages of a collection of the user's documents that fit a question best, by words and by "
    "meaning. Cite the file of what you use.",
    SearchArguments,
    FoundPassages,
    search,
)

LIST_COLLECTIONS = Tool(
    "list_collections",
    "List collections",
    "List the collections of documents that `search` can search.",
    NoArguments,
    Collections,
    list_collections,
)
