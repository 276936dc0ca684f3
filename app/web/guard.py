"""Who may open the page: checks of every request, the WebSocket's included.

Behind the WebSocket is a terminal application with the user's conversations. Therefore

* on loopback the `Host` header must be a loopback name, against DNS rebinding;
* a request with an `Origin` must come from this page: a browser lets any web page open a WebSocket to
  this machine;
* with a token, every request needs it: once as `?token=`, then as a cookie.
"""

import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "pravaha-token"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Nothing is to be fetched from other machines, whatever a script of the page wants.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'"
)


class Guard:
    """Middleware that refuses requests of others with a 403."""

    def __init__(self, *, on_loopback: bool, token: str | None) -> None:
        self._on_loopback = on_loopback
        self._token = token

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the request, or refuse it."""
        if self._on_loopback and _host_name(request.host) not in _LOOPBACK_NAMES:
            raise web.HTTPForbidden(text="This page answers only to its loopback address.")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="This request comes from another page.")
        if self._token is not None:
            if self._is_token(request.query.get("token")) and request.path == "/":
                response = web.HTTPFound("/")
                response.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict")
                raise response
            if not self._is_token(request.cookies.get(COOKIE)):
                raise web.HTTPForbidden(text="Open this page with ?token=TOKEN after its address.")
        response_to = await handler(request)
        if not response_to.prepared:
            response_to.headers["content-security-policy"] = _POLICY
        return response_to

    def _is_token(self, offered: str | None) -> bool:
        wanted = self._token or ""
        return offered is not None and hmac.compare_digest(offered.encode(), wanted.encode())


def _host_name(header: str) -> str:
    return (urlsplit(f"//{header}").hostname or "").lower()
