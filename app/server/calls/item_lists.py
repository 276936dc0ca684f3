"""Lists of items, in pages: those of a response's input and of a conversation."""

from typing import Annotated, Any

from fastapi import Query

from app.server.responses.store import ItemPage

DEFAULT_PAGE = 20

Include = Annotated[list[str] | None, Query()]
"""OpenAI's parameter for more of each item. All of it is given always; names of it are accepted."""


def item_list(page: ItemPage) -> dict[str, Any]:
    """A page of items as OpenAI's `list` object."""
    items = page.items
    return {
        "object": "list",
        "data": items,
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": page.has_more,
    }
