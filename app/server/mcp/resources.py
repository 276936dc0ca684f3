"""The resources: what a host can read beside calling tools. All are JSON, except the metrics."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate

from app.server.mcp.api_client import ApiClient, ApiRefusal
from app.server.mcp.collections import find_collection, known_collections
from app.server.mcp.user_data import UserData

JSON = "application/json"
TEXT = "text/plain"
METRICS = "pravaha://metrics"
MODELS = "pravaha://models"
AGENTS = "pravaha://agents"
COLLECTIONS = "pravaha://collections"
CONVERSATIONS = "pravaha://conversations"

_ONE = re.compile(rf"({COLLECTIONS}|{CONVERSATIONS})/(.+)")
_MAX_LISTED = 50
"""Conversations that are listed one by one; the others are in `pravaha://conversations`."""

FIXED = (
    Resource(
        uri=METRICS,
        name="metrics",
        title="Metrics",
        description="The counters of engine and server, in Prometheus' text format.",
        mime_type=TEXT,
    ),
    Resource(
        uri=MODELS,
        name="models",
        title="Models",
        description="The models that are served, with their context lengths.",
        mime_type=JSON,
    ),
    Resource(
        uri=AGENTS,
        name="agents",
        title="Agents",
        description="The agents and pipelines that can be run.",
        mime_type=JSON,
    ),
    Resource(
        uri=COLLECTIONS,
        name="collections",
        title="Collections",
        description="The collections of documents that can be searched.",
        mime_type=JSON,
    ),
    Resource(
        uri=CONVERSATIONS,
        name="conversations",
        title="Conversations",
        description="The conversations of the user, newest first.",
        mime_type=JSON,
    ),
)

TEMPLATES = (
    ResourceTemplate(
        uri_template=f"{COLLECTIONS}/{{collection}}",
        name="collection",
        title="Documents of a collection",
        description="The documents of a collection, by its name or id.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template=f"{CONVERSATIONS}/{{conversation}}",
        name="conversation",
        title="A conversation",
        description="The messages of a conversation, by its id.",
        mime_type=JSON,
    ),
)


class NoSuchResource(Exception):
    """There is nothing at a URI."""


async def listed_resources(user: UserData | None) -> list[Resource]:
    """The resources that hosts offer to their users by name."""
    if user is None:
        return list(FIXED)
    return [
        *FIXED,
        *(
            Resource(
                uri=f"{CONVERSATIONS}/{one['id']}",
                name=one["title"] or one["id"],
                title=one["title"] or None,
                description=f"A conversation of {one['messages']} messages.",
                mime_type=JSON,
            )
            for one in (await user.conversations())[:_MAX_LISTED]
        ),
    ]


async def read_resource(uri: str, api: ApiClient, user: UserData | None) -> tuple[str, str]:
    """The contents of a resource and their type.

    Raises:
        NoSuchResource: there is none at this URI.
        PravahaError: it cannot be read.
    """
    if uri == METRICS:
        return await api.text("/metrics"), TEXT
    one = _ONE.fullmatch(uri)
    if one is not None:
        name = unquote(one[2])
        found = (
            await _documents(name, api, user)
            if one[1] == COLLECTIONS
            else await _conversation(name, api, user)
        )
        if found is None:
            raise NoSuchResource
        return _json(found), JSON
    if uri == MODELS:
        return _json(await api.get("/v1/models")), JSON
    if uri == AGENTS:
        return _json(await api.get("/v1/agents")), JSON
    if uri == COLLECTIONS:
        return _json(await _collections(api, user)), JSON
    if uri == CONVERSATIONS:
        return _json(await _conversations(user)), JSON
    raise NoSuchResource


async def _collections(api: ApiClient, user: UserData | None) -> Mapping[str, Any]:
    fields = [
        {"id": one.id, "name": one.name, "documents": one.documents, "uri": _uri(one.id)}
        for one in await known_collections(api, user)
    ]
    return {"collections": fields}


async def _conversations(user: UserData | None) -> Mapping[str, Any]:
    if user is not None:
        return {"conversations": await user.conversations()}
    note = (
        "Clients of a server read conversations of the API by their ids. The user's own are listed by "
        "`pravaha mcp`, which a host starts on the user's machine."
    )
    return {"conversations": [], "note": note}


async def _conversation(
    name: str, api: ApiClient, user: UserData | None
) -> Mapping[str, Any] | None:
    """A conversation of the user, otherwise one of the API."""
    own = None if user is None else await user.conversation(name)
    if own is not None:
        return own
    path = f"/v1/conversations/{quote(name, safe='')}"
    try:
        return {**await api.get(path), "items": await api.listed(f"{path}/items")}
    except ApiRefusal as refusal:
        if refusal.status == 404:
            return None
        raise


async def _documents(name: str, api: ApiClient, user: UserData | None) -> Mapping[str, Any] | None:
    try:
        collection = await find_collection(api, user, name)
    except ApiRefusal as refusal:
        if refusal.status == 404:
            return None
        raise
    if collection.own and user is not None:
        documents = await user.documents(collection.name)
    else:
        names = {one["id"]: one["filename"] for one in await api.listed("/v1/files")}
        path = f"/v1/vector_stores/{quote(collection.id, safe='')}/files"
        documents = [
            {"id": one["id"], "file": names.get(one["id"]), "status": one["status"]}
            for one in await api.listed(path)
        ]
    return {"id": collection.id, "name": collection.name, "documents": documents}


def _uri(collection_id: str) -> str:
    return f"{COLLECTIONS}/{quote(collection_id, safe='')}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
