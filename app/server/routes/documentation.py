"""`GET /openapi.json` and `GET /docs`: what the API is, for programs and for people.

They need no key, because they say nothing of this server but whether it has one.
"""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.middleware.auth import requires
from app.server.openapi.documentation import Documentation
from app.server.wire.described import JSON, answers

router = APIRouter()

_NOTHING_LOADED = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""The policy of the page, which has its style in it."""


@router.get("/openapi.json")
@requires("public")
@answers(dict)
async def openapi_document(request: Request) -> Response:
    """The OpenAPI document of this server."""
    document = await asyncio.to_thread(_documentation(request).document)
    return Response(document, media_type=JSON)


@router.get("/docs")
@requires("public")
@answers(str, media_type="text/html")
async def documentation_page(request: Request) -> Response:
    """The same as a page that works offline."""
    page = await asyncio.to_thread(_documentation(request).page)
    headers = {"content-security-policy": _NOTHING_LOADED, "x-content-type-options": "nosniff"}
    return Response(page, media_type="text/html", headers=headers)


def _documentation(request: Request) -> Documentation:
    documentation: Documentation = request.app.state.documentation
    return documentation
