"""Limits on request bodies, enforced while the bytes arrive and before they are buffered.

Compressed bodies are refused instead of being decompressed, which excludes decompression bombs.
"""

import asyncio
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.wire.errors import ApiError, error_response


class BodyLimit:
    """Refuses bodies that are too large (413), compressed (415) or too slow (408)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a guarded `receive`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refuse_headers(headers)
        if refusal is not None:
            await error_response(refusal)(scope, receive, send)
            return
        await self._app(scope, self._guard(receive), send)

    def _refuse_headers(self, headers: Headers) -> ApiError | None:
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            return ApiError(415, "Send the body uncompressed.", param="content-encoding")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._max_bytes:
            return self._too_large()
        return None

    def _guard(self, receive: Receive) -> Receive:
        received = 0
        complete = False
        deadline = self._clock() + self._timeout_s

        async def guarded() -> Message:
            nonlocal received, complete
            if complete:  # only the disconnect follows, and it has no deadline
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, deadline - self._clock())):
                    message = await receive()
            except TimeoutError:
                raise ApiError(408, "The request body took too long to arrive.") from None
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise self._too_large()
            complete = not message.get("more_body", False)
            return message

        return guarded

    def _too_large(self) -> ApiError:
        # The connection is closed: the rest of the body is not read.
        return ApiError(
            413,
            f"The request body is larger than {self._max_bytes} bytes.",
            code="request_too_large",
            headers={"connection": "close"},
        )
