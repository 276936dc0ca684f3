"""`GET /v1/sessions`: what the prompts of the last conversations have cost."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.engine import SessionList
from app.server.wire.described import answers
from app.server.wire.json_response import json_response

router = APIRouter()


@router.get("/v1/sessions")
@requires("metrics")
@answers(SessionList)
async def list_sessions(request: Request) -> Response:
    """The sessions that were used last, the newest first; no texts."""
    found = server_context(request).sessions.recent()
    data = [
        {
            "id": one.name,
            "object": "session",
            "requests": one.requests,
            "prompt_tokens": one.prompt_tokens,
            "new_tokens": one.new_tokens,
            "computed_tokens": one.computed_tokens,
            "reread_tokens": one.reread_tokens,
            "hit_rate": one.hit_rate,
            "last_used": int(one.last_used),
        }
        for one in found
    ]
    return json_response({"object": "list", "data": data})
