"""The `Host` check of a server bound to loopback, against DNS rebinding.

A web page can make a browser resolve the page's own host name to 127.0.0.1 and then read our answers
as same-origin. Such a request still carries the page's name in `Host`.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.wire.errors import ApiError, error_response

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class LoopbackHosts:
    """Answers only requests addressed to this machine by a loopback name."""

    def __init__(self, app: ASGIApp, *, also: tuple[str, ...] = ()) -> None:
        self._app = app
        self._names = LOOPBACK_NAMES | {name.lower() for name in also}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403."""
        if scope["type"] in ("http", "websocket"):
            host = host_name(Headers(scope=scope).get("host", ""))
            if host not in self._names:
                refusal = ApiError(403, "This server answers only to its loopback address.")
                await error_response(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_name(header: str) -> str:
    """The name in a `Host` header, lower case, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
