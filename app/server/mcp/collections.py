"""The collections a caller can search: the API's vector stores and, for the user's host, the user's own."""

from dataclasses import dataclass
from typing import Any

from app.server.mcp.api_client import ApiClient, ApiRefusal
from app.server.mcp.user_data import UserData

_LISTED = 20
"""Names in a refusal."""


@dataclass(frozen=True, slots=True)
class KnownCollection:
    """A collection.

    Attributes:
        id: of a vector store its id, of the user's own its name.
        name: its name; a vector store may have none.
        documents: how many can be found.
        own: whether it is the user's own.
    """

    id: str
    name: str
    documents: int
    own: bool


async def known_collections(api: ApiClient, user: UserData | None) -> list[KnownCollection]:
    """Every collection, the user's own first.

    Raises:
        ApiRefusal: from the API; a server without vector stores has none.
    """
    own = [] if user is None else await user.collections()
    return [
        *(KnownCollection(one["name"], one["name"], one["documents"], True) for one in own),
        *(
            KnownCollection(one["id"], one["name"], one["file_counts"]["completed"], False)
            for one in await _vector_stores(api)
        ),
    ]


async def find_collection(api: ApiClient, user: UserData | None, name: str) -> KnownCollection:
    """The collection with an id or a name.

    Raises:
        ApiRefusal: 404 with the collections that there are; or from the API.
    """
    known = await known_collections(api, user)
    fitting = [one for one in known if one.id == name] or [one for one in known if one.name == name]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ids = ", ".join(one.id for one in fitting[:_LISTED])
        raise ApiRefusal(404, f"Several collections are called {name!r:.80}; use an id: {ids}.")
    names = ", ".join(one.name or one.id for one in known[:_LISTED])
    there_are = f"there are: {names}" if names else "there are none"
    raise ApiRefusal(404, f"There is no collection {name!r:.80}; {there_are}.")


async def _vector_stores(api: ApiClient) -> list[dict[str, Any]]:
    try:
        return await api.listed("/v1/vector_stores")
    except ApiRefusal as refusal:
        if refusal.code == "no_files":
            return []
        raise
