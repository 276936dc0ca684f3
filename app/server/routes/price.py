"""`POST /price`: the predicted cost of a request with given tokens; `HttpClient.price` uses it."""

from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import loaded_model
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import PriceRequest
from engine.api.fork_price import ForkPrice

router = APIRouter(route_class=JsonRoute)


@router.post("/price")
@requires("infer")
@answers(ForkPrice)
async def price(body: PriceRequest, request: Request) -> Response:
    """Tokens to prefill, blocks to copy and predicted seconds of a request with these tokens."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    return json_response(asdict(model.engine.price(body.tokens)))
