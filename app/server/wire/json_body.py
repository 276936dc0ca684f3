"""Strict JSON bodies: the route class of every endpoint with a body.

orjson refuses input that Python's own parser accepts: NaN, infinities, numbers beyond a double, lone
surrogates, invalid UTF-8 and nesting past 1,024 levels. The required content type also excludes
cross-site forms, which can send text/plain but no JSON without a preflight.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from app.server.wire.body_size import check_body_size
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.image_literals import without_images
from app.server.wire.json_size import check_json_size


class JsonRequest(Request):
    """A request whose body must be JSON."""

    _is_parsed = False
    _parsed: Any

    async def json(self) -> Any:
        """The parsed body.

        Raises:
            ApiError: 415 for another content type, 400 for a body that is not JSON or has too many
                values, 413 for one that is too large without its images.
        """
        if self._is_parsed:
            return self._parsed
        if not is_json(self.headers.get("content-type", "")):
            raise ApiError(415, "Send the body as JSON, with `content-type: application/json`.")
        body = await self.body()
        text = without_images(body)
        check_body_size(self.scope, len(text))
        check_json_size(text)
        try:
            self._parsed = orjson.loads(body)
            self._is_parsed = True
        except orjson.JSONDecodeError as error:
            raise bad_request(
                f"The body is not valid JSON: {error}.", code="invalid_json"
            ) from None
        return self._parsed

    def discard(self) -> None:
        """Free the body's bytes and undeclared fields; the validated body holds the others.

        A handler runs as long as its answer, and the framework keeps the parsed body meanwhile.
        """
        self._body = b""
        if self._is_parsed and isinstance(self._parsed, dict):
            self._parsed.clear()


class JsonRoute(APIRoute):
    """Reads bodies through `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, called with a `JsonRequest`."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            strict = JsonRequest(request.scope, request.receive)
            if request.method == "POST":
                await strict.json()  # the framework itself does not parse other content types
            return await handle(strict)

        return strictly


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON in UTF-8."""
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = {one for one in parameters if one.startswith("charset=")}
    return media == "application/json" and charsets <= {"charset=utf-8", 'charset="utf-8"'}
