"""`POST /v1/moderations`: what the guardrails find in texts, in the shape of OpenAI's endpoint."""

import uuid
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from agents.guardrails.detection import Detection, Kind
from agents.guardrails.guardrails import Guardrails
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import off_loop
from app.server.middleware.auth import requires
from app.server.middleware.disconnect import while_connected
from app.server.process.context import server_context
from app.server.wire.answers.chat import Moderation
from app.server.wire.described import answers
from app.server.wire.errors import ApiError
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ModerationRequest

router = APIRouter(route_class=JsonRoute)

MODEL = "pravaha-guardrails"
_OPENAI_PREFIXES = ("omni-moderation", "text-moderation")
"""Names that clients of OpenAI send; here they mean this server's guardrails."""

UNEXAMINED = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
"""OpenAI's categories, which the guardrails do not look for: always false, applied to no input."""


@router.post("/v1/moderations")
@requires("infer")
@answers(Moderation)
async def create_moderation(body: ModerationRequest, request: Request) -> Response:
    """One result for each text."""
    context = server_context(request)
    check_extra_fields(request, body)
    if (
        body.model is not None
        and body.model != MODEL
        and not body.model.startswith(_OPENAI_PREFIXES)
    ):
        raise ApiError(
            404,
            f"There is no moderation model {body.model[:80]!r} here; this server has {MODEL!r}.",
            param="model",
            code="model_not_found",
        )
    with context.drain.work():
        results = await while_connected(request, context, _results(context.moderation, body.texts))
    return json_response({"id": f"modr-{uuid.uuid4().hex}", "model": MODEL, "results": results})


async def _results(guardrails: Guardrails, texts: list[str]) -> list[dict[str, Any]]:
    return [await _result(guardrails, text) for text in texts]


async def _result(guardrails: Guardrails, text: str) -> dict[str, Any]:
    checked = await off_loop(len(text), lambda: guardrails.check_input(text))
    found = [*checked.detections, *await guardrails.classify_input(text)]
    scores = {
        kind: max((d.confidence for d in found if d.kind is kind), default=0.0) for kind in Kind
    }
    examined = guardrails.examined_kinds
    own = {kind.value: kind in examined for kind in Kind}
    unexamined = dict.fromkeys(UNEXAMINED, False)
    return {
        "flagged": bool(found),
        "categories": unexamined | {kind.value: score > 0 for kind, score in scores.items()},
        "category_scores": dict.fromkeys(UNEXAMINED, 0.0)
        | {kind.value: round(score, 4) for kind, score in scores.items()},
        "category_applied_input_types": {
            name: ["text"] if applied else [] for name, applied in (unexamined | own).items()
        },
        "detections": [_fields(one) for one in sorted(found, key=lambda one: one.start)],
    }


def _fields(detection: Detection) -> dict[str, Any]:
    return {
        "kind": detection.kind.value,
        "rule": detection.rule,
        "start": detection.start,
        "end": detection.end,
        "confidence": round(detection.confidence, 4),
    }
