"""Lists of items, in pages: those of a response's input and of a conversation."""

from typing import Annotated, Any

from fastapi import Query

from app.server.calls.retrieval import list_body
from app.server.responses.store import ItemPage
from app.server.retrieval.paging import Page

Include = Annotated[list[str] | None, Query()]
"""OpenAI's parameter for more of each item. All of it is given always; names of it are accepted."""


def item_list(page: ItemPage) -> dict[str, Any]:
    """A page of items as OpenAI's `list` object."""
    return list_body(Page(tuple(page.items), page.has_more), dict)
