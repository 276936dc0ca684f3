"""`POST /scheduling`: change the scheduling policy or the batch former while requests run.

`GET /snapshot` contains the settings in force.
"""

from dataclasses import asdict, fields, replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import engine_named
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import SchedulingRequest
from engine.api.scheduling import Scheduling

router = APIRouter(route_class=JsonRoute)


@router.post("/scheduling")
@requires("control")
@answers(Scheduling)
async def set_scheduling(body: SchedulingRequest, request: Request) -> Response:
    """Change the given settings from the next step on; the answer contains all settings."""
    engine = engine_named(server_context(request), body.model)
    check_extra_fields(request, body)
    given = body.model_dump(include={one.name for one in fields(Scheduling)}, exclude_none=True)
    scheduling = replace(engine.scheduling, **given)
    engine.set_scheduling(scheduling)
    return json_response(asdict(scheduling))
