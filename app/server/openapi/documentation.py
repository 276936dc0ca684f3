"""`Documentation`: the OpenAPI document and its page as they are sent, made when they are first asked for."""

import json
from collections.abc import Iterable
from functools import cached_property
from threading import Lock
from typing import Any

from starlette.routing import BaseRoute

from app.server.openapi.document import api_document
from app.server.openapi.page import api_page


class Documentation:
    """What the server says of its API. Making it takes a second of processor time: call it in a thread."""

    def __init__(self, routes: Iterable[BaseRoute], *, needs_key: bool) -> None:
        """Nothing is made yet.

        Args:
            routes: of the application.
            needs_key: whether the server has an API key.
        """
        self._routes = list(routes)
        self._needs_key = needs_key
        self._making = Lock()

    def document(self) -> bytes:
        """The document as JSON."""
        with self._making:
            return self._document_json

    def page(self) -> bytes:
        """The page as HTML."""
        with self._making:
            return self._page

    @cached_property
    def _document(self) -> dict[str, Any]:
        return api_document(self._routes, needs_key=self._needs_key)

    @cached_property
    def _document_json(self) -> bytes:
        # Limits such as 2⁶⁴ are beyond orjson's integers.
        return json.dumps(self._document, ensure_ascii=False).encode()

    @cached_property
    def _page(self) -> bytes:
        return api_page(self._document).encode()
