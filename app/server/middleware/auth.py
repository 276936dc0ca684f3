"""Authentication: each route declares one scope, and every scope but `public` needs the API key.

The check is pure ASGI, because a `BaseHTTPMiddleware` breaks the cancellation of streams. It runs
before routing, so that without the key an unknown path gets the same answer as a known one.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.wire.errors import ApiError, error_response

RouteScope = Literal["public", "infer", "metrics", "control", "agents", "files", "rag"]
"""`public`: the probes. `infer`: everything that reaches the model. `metrics`: `/metrics`.
`control`: settings of the engine that affect all requests. `agents`: runs of agents and their approvals.
`files`: uploaded files. `rag`: vector stores."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_SCOPE_ATTRIBUTE = "route_scope"


def requires(scope: RouteScope) -> Callable[[Endpoint], Endpoint]:
    """Declare the scope of an endpoint; a test fails on any route without one."""

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _SCOPE_ATTRIBUTE, scope)
        return endpoint

    return declare


def scope_of(route: APIRoute | APIWebSocketRoute) -> RouteScope | None:
    """The declared scope of a route, or None."""
    return getattr(route.endpoint, _SCOPE_ATTRIBUTE, None)


def walk_routes(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Every route, including those of included routers and mounts."""
    for route in routes:
        inner = getattr(route, "original_router", route)
        children = getattr(inner, "routes", None)
        if children is None:
            yield route
        else:
            yield from walk_routes(children)


def public_paths(routes: Iterable[BaseRoute]) -> frozenset[str]:
    """The exact paths that need no key."""
    return frozenset(
        route.path
        for route in walk_routes(routes)
        if isinstance(route, APIRoute) and scope_of(route) == "public"
    )


class ApiKeyAuth:
    """Requires `Authorization: Bearer KEY` or `x-api-key: KEY` on all but the public paths."""

    def __init__(self, app: ASGIApp, *, api_key: str, public: frozenset[str]) -> None:
        self._app = app
        self._key = api_key.encode()
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] in ("http", "websocket") and scope["path"] not in self._public:
            offered = list(_offered_keys(Headers(scope=scope)))
            # The duration of compare_digest does not depend on the position of the first difference.
            if not any(hmac.compare_digest(one, self._key) for one in offered):
                await error_response(_refusal(not offered))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _offered_keys(headers: Headers) -> Iterator[bytes]:
    """The keys of both headers: some clients send a placeholder in one and the key in the other."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        yield value.strip().encode("latin-1")
    key = headers.get("x-api-key")
    if key:
        yield key.encode("latin-1")


def _refusal(missing: bool) -> ApiError:
    message = (
        "This server needs an API key: send it as `Authorization: Bearer KEY`."
        if missing
        else "The API key is not the one this server was started with."
    )
    return ApiError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
