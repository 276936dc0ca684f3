"""`LargeBody`: the place of a body that is larger than others because of its images; there are few.

HTTP requests and the messages of WebSockets have the same places.
"""

from dataclasses import dataclass

from starlette.types import Message, Scope, Send

from app.server.wire.body_size import max_body_bytes
from app.server.wire.errors import ApiError, retry_hints

MAX_LARGE_BODIES = 4
"""Bodies beyond `max_body_bytes` with images at a time, from their arrival to their answer's beginning."""
_LARGE_RETRY_S = 2
_KEY = "large_bodies"


@dataclass(slots=True)
class LargeBodies:
    """The number of places that are free."""

    free: int = MAX_LARGE_BODIES


class LargeBody:
    """The place of one body with images, if it needs one."""

    def __init__(self, places: LargeBodies) -> None:
        """It has none yet."""
        self._places = places
        self._has_one = False

    def take(self) -> None:
        """Take a place, unless it has one.

        Raises:
            ApiError: 429, all are taken.
        """
        if self._has_one:
            return
        if not self._places.free:
            raise ApiError(
                429,
                f"{MAX_LARGE_BODIES} requests with large images are being received; try again.",
                code="too_many_large_requests",
                headers={**retry_hints(_LARGE_RETRY_S), "connection": "close"},
            )
        self._places.free -= 1
        self._has_one = True

    def free(self) -> None:
        """Give the place back. Idempotent."""
        if self._has_one:
            self._places.free += 1
            self._has_one = False

    def freed_by(self, send: Send) -> Send:
        """`send`, which gives the place back when the response begins: the body has been read by then."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.free()
            await send(message)

        return sending


def offer_places(scope: Scope, places: LargeBodies) -> None:
    """Set where the messages of a connection get their places."""
    scope.setdefault("state", {})[_KEY] = places


def large_message(scope: Scope, size: int) -> LargeBody:
    """The place of a message of a connection, taken if it is larger than bodies without images.

    Raises:
        ApiError: 429, all are taken.
    """
    body = LargeBody(scope["state"][_KEY])
    limit = max_body_bytes(scope)
    if limit is not None and size > limit:
        body.take()
    return body
