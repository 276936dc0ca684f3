"""`PlainPath`: a path with a slash at its end, or with several in a row, is the path without them.

Base URLs are written with and without a slash at the end. A redirect, the usual remedy, would lose the
body of a POST in many clients.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_SLASHES = re.compile(r"/{2,}")


class PlainPath:
    """Rewrites the path before anything looks at it: keys, limits and routes know one spelling of each."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under its plain path."""
        if scope["type"] in ("http", "websocket"):
            path = plain_path(scope["path"])
            if path != scope["path"]:
                scope = {
                    **scope,
                    "path": path,
                    "raw_path": plain_path(_raw(scope)).encode("latin-1"),
                }
        await self._app(scope, receive, send)


def plain_path(path: str) -> str:
    """The path without its superfluous slashes; `/` stays."""
    return _SLASHES.sub("/", path).rstrip("/") or "/"


def _raw(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or b"/"
    return raw.decode("latin-1")
