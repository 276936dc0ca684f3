"""`OllamaRoute`: JSON bodies of Ollama's API, and errors in its form: `{"error": "a sentence"}`."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.server.middleware.disconnect import ClientDisconnected
from app.server.wire.errors import ApiError, from_engine, from_validation
from app.server.wire.json_body import JsonRoute


def ollama_error(error: ApiError) -> bytes:
    """The line that stands for an error."""
    return orjson.dumps({"error": error.detail}) + b"\n"


class OllamaRoute(JsonRoute):
    """Ollama's clients print the text of `error`; an object would be printed as such."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of `JsonRoute` with its errors in Ollama's form."""
        handle = super().get_route_handler()

        async def translated(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientDisconnected:
                raise
            except RequestValidationError as error:
                return _response(from_validation(error.errors()))
            except ApiError as error:
                return _response(error)
            except HTTPException:
                raise
            except Exception as error:
                return _response(from_engine(error))

        return translated


def _response(error: ApiError) -> Response:
    body = ollama_error(error)
    return Response(body, error.status_code, error.headers, "application/json; charset=utf-8")
