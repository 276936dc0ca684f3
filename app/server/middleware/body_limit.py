"""Limits on request bodies, enforced while the bytes arrive and before they are buffered.

Compressed bodies are refused instead of being decompressed, which excludes decompression bombs.
Uploads, which are written to disk while they arrive, have a limit of their own, and more time the more of
them has arrived.
"""

import asyncio
import math
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.wire.errors import ApiError, error_response

MIN_UPLOAD_RATE = 64 * 1024
"""Bytes per second that an upload must have on average, beyond the time that every body has."""


class BodyLimit:
    """Refuses bodies that are too large (413), compressed (415) or too slow (408)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        timeout_s: float,
        is_upload: Callable[[str], bool] = lambda path: False,
        max_upload_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._is_upload = is_upload
        self._max_upload_bytes = max_upload_bytes
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a guarded `receive`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_upload = scope["method"] == "POST" and self._is_upload(scope["path"])
        max_bytes = self._max_upload_bytes if is_upload else self._max_bytes
        refusal = _refuse_headers(headers, max_bytes)
        if refusal is not None:
            await error_response(refusal)(scope, receive, send)
            return
        rate = MIN_UPLOAD_RATE if is_upload else math.inf
        await self._app(scope, self._guard(receive, max_bytes, rate), send)

    def _guard(self, receive: Receive, max_bytes: int, rate: float) -> Receive:
        received = 0
        complete = False
        deadline = self._clock() + self._timeout_s

        async def guarded() -> Message:
            nonlocal received, complete
            if complete:  # only the disconnect follows, and it has no deadline
                return await receive()
            try:
                left = deadline + received / rate - self._clock()
                async with asyncio.timeout(max(0.0, left)):
                    message = await receive()
            except TimeoutError:
                raise ApiError(408, "The request body took too long to arrive.") from None
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise _too_large(max_bytes)
            complete = not message.get("more_body", False)
            return message

        return guarded


def _refuse_headers(headers: Headers, max_bytes: int) -> ApiError | None:
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return ApiError(415, "Send the body uncompressed.", param="content-encoding")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > max_bytes:
        return _too_large(max_bytes)
    return None


def _too_large(max_bytes: int) -> ApiError:
    # The connection is closed: the rest of the body is not read.
    return ApiError(
        413,
        f"The request body is larger than {max_bytes} bytes.",
        code="request_too_large",
        headers={"connection": "close"},
    )
