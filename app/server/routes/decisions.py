"""`POST /v1/decisions`: probabilities of the answers to many questions about one input, in OpenAI's shape."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.deciding import decide
from app.server.calls.decision_answers import decision_answer
from app.server.calls.decision_input import asked_decisions
from app.server.calls.extra_fields import check_extra_fields
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.decisions import DecisionsAnswer, DecisionsByIdAnswer
from app.server.wire.decisions_by_id import answers_by_id
from app.server.wire.decisions_schemas import DecisionRequest
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.usage import input_output_usage

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/decisions")
@requires("infer")
@answers(DecisionsAnswer | DecisionsByIdAnswer)
async def create_decisions(body: DecisionRequest, request: Request) -> Response:
    """Answers in the order of the questions; nothing is generated."""
    context = server_context(request)
    check_extra_fields(request, body)
    decided = await decide(request, context, asked_decisions(body))
    if body.has_ids:
        return json_response(answers_by_id(decided))
    return json_response(
        {
            "model": decided.model,
            "answers": [
                decision_answer(question, answer)
                for question, answer in zip(body.questions, decided.answers, strict=True)
            ],
            "usage": input_output_usage(
                decided.input_tokens, decided.cached_tokens, decided.output_tokens
            ),
        }
    )
