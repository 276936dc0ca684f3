"""Limits on request bodies, enforced while the bytes arrive and before they are buffered.

Compressed bodies are refused instead of being decompressed, which excludes decompression bombs.
Uploads, which are written to disk while they arrive, have a limit of their own, and more time the more of
them has arrived. Bodies with images are larger, too; few of them are held at a time, and what they have
beside the images is limited when they are parsed (`wire.json_body`).
"""

import asyncio
import math
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.wire.body_size import base64_length, limit_body, too_large
from app.server.wire.errors import ApiError, error_response
from app.server.wire.large_body import LargeBodies, LargeBody, offer_places

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
        with_images: frozenset[str] = frozenset(),
        max_image_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._is_upload = is_upload
        self._max_upload_bytes = max_upload_bytes
        self._with_images = with_images
        self._max_image_bytes = max_image_bytes
        self._places = LargeBodies()
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a guarded `receive`."""
        if scope["type"] == "websocket":  # its messages are bodies
            limit_body(scope, self._max_bytes)
            offer_places(scope, self._places)
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_upload = scope["method"] == "POST" and self._is_upload(scope["path"])
        max_bytes = self._max_upload_bytes if is_upload else self._max_bytes
        if scope["path"] in self._with_images:
            max_bytes += base64_length(self._max_image_bytes)
        refusal = _refuse_headers(headers, max_bytes)
        if refusal is not None:
            await error_response(refusal)(scope, receive, send)
            return
        limit_body(scope, self._max_upload_bytes if is_upload else self._max_bytes)
        slot = LargeBody(self._places)
        rate = MIN_UPLOAD_RATE if is_upload else math.inf
        guarded = self._guard(receive, max_bytes, rate, None if is_upload else slot)
        try:
            await self._app(scope, guarded, slot.freed_by(send))
        finally:
            slot.free()

    def _guard(
        self, receive: Receive, max_bytes: int, rate: float, slot: LargeBody | None
    ) -> Receive:
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
                raise too_large(max_bytes)
            if slot is not None and received > self._max_bytes:
                slot.take()
            complete = not message.get("more_body", False)
            return message

        return guarded


def _refuse_headers(headers: Headers, max_bytes: int) -> ApiError | None:
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return ApiError(415, "Send the body uncompressed.", param="content-encoding")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > max_bytes:
        return too_large(max_bytes)
    return None
