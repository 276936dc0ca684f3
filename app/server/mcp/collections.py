"""The collections a caller can search: the API's vector stores and, for the user's host, the user's own."""

from dataclasses import dataclass

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
    return [*await _own(user), *await _vector_stores(api)]


async def find_collection(api: ApiClient, user: UserData | None, name: str) -> KnownCollection:
    """The collection with an id or a name. The API is asked only if the user has none of this name.

    Raises:
        ApiRefusal: 404 with the collections that there are; or from the API.
    """
    known = await _own(user)
    fitting = _fitting(known, name)
    if not fitting:
        known += await _vector_stores(api)
        fitting = _fitting(known, name)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ids = ", ".join(one.id for one in fitting[:_LISTED])
        raise ApiRefusal(404, f"Several collections are called {name!r:.80}; use an id: {ids}.")
    names = ", ".join(one.name or one.id for one in known[:_LISTED])
    there_are = f"there are: {names}" if names else "there are none"
    raise ApiRefusal(404, f"There is no collection {name!r:.80}; {there_are}.")


def _fitting(known: list[KnownCollection], name: str) -> list[KnownCollection]:
    return [one for one in known if one.id == name] or [one for one in known if one.name == name]


async def _own(user: UserData | None) -> list[KnownCollection]:
    if user is None:
        return []
    return [
        KnownCollection(one["name"], one["name"], one["documents"], True)
        for one in await user.collections()
    ]


async def _vector_stores(api: ApiClient) -> list[KnownCollection]:
    try:
        stores = await api.listed("/v1/vector_stores")
    except ApiRefusal as refusal:
        if refusal.code == "no_files":
            return []
        raise
    return [
        KnownCollection(one["id"], one["name"], one["file_counts"]["completed"], False)
        for one in stores
    ]
