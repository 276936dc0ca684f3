"""`GET /`: says what this is. Clients ask it (`HEAD`) to see whether a server is there."""

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from app.server.middleware.auth import requires
from app.server.wire.described import answers

_TEXT = """\
Pravāha is running.

OpenAI's API     /v1/chat/completions, /v1/completions, /v1/embeddings
Anthropic's API  /v1/messages, /v1/messages/count_tokens
Models           /v1/models
Description      /docs, /openapi.json
Probes           /health, /ready
"""

router = APIRouter()


@router.get("/")
@requires("public")
@answers(str, media_type="text/plain")
async def root() -> Response:
    """The name of the program and the paths that clients need."""
    return PlainTextResponse(_TEXT)
