"""Strict JSON bodies: the route class of every endpoint with a body.

orjson refuses input that Python's own parser accepts: NaN, infinities, numbers beyond a double, lone
surrogates, invalid UTF-8 and nesting past 1,024 levels.

A web page must send the content type of JSON: browsers send a form or plain text to any address, but
JSON only after they have asked it. Of other programs the content type is not looked at, because many
send none, or that of a form (as `curl -d` does).
"""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders

from app.server.wire.body_size import check_body_size
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.image_literals import without_images
from app.server.wire.json_size import check_json_size
from app.server.wire.web_page import is_from_page


class JsonRequest(Request):
    """A request whose body must be JSON."""

    _is_parsed = False
    _parsed: Any

    async def json(self) -> Any:
        """The parsed body.

        Raises:
            ApiError: 400 for a body that is not JSON or has too many values, 413 for one that is too large
                without its images.
        """
        if self._is_parsed:
            return self._parsed
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
            if request.method != "POST":
                return await handle(JsonRequest(request.scope, request.receive))
            if not is_read_as_json(request.headers):
                raise ApiError(415, "Send the body as JSON, with `content-type: application/json`.")
            # The framework itself does not parse other content types.
            MutableHeaders(scope=request.scope)["content-type"] = "application/json"
            strict = JsonRequest(request.scope, request.receive)
            await strict.json()
            return await handle(strict)

        return strictly


def is_read_as_json(headers: Headers) -> bool:
    """Whether the body of a request with these headers is taken for JSON in UTF-8."""
    media, *parameters = (
        part.strip().lower() for part in headers.get("content-type", "").split(";")
    )
    charsets = {
        one.partition("=")[2].strip('"') for one in parameters if one.startswith("charset=")
    }
    if not charsets <= {"utf-8", "utf8"}:
        return False
    if is_from_page(headers):
        return media == "application/json"
    return not media.startswith("multipart/")  # a file for another endpoint
