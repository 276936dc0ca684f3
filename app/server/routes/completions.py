"""`POST /v1/completions`: raw prompts, no chat template.

Control tokens in a prompt given as text are recognised, because clients of this endpoint apply the
template themselves. Put untrusted text into chat messages instead.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.best_of import check_best_of
from app.server.calls.completion_answer import CompletionAnswer
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.generation import begin, finish
from app.server.calls.guarding import CallGuard
from app.server.calls.infill import completion_prompts, infill_sampling, infill_tokens
from app.server.calls.model import check_length, loaded_model
from app.server.calls.resumable import stream_response
from app.server.calls.sampling import completion_sampling
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.errors import bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import CompletionRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/completions")
@requires("infer")
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Continue one or more prompts, streamed or whole."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    check_best_of(body)
    tokens = infill_tokens(body, model)
    sampling = infill_sampling(completion_sampling(body, model.info), tokens)
    if len(body.prompts) > context.config.max_choices:  # before any of them is tokenised
        raise bad_request(
            f"The request has {len(body.prompts)} prompts; the maximum is "
            f"{context.config.max_choices}.",
            param="prompt",
        )
    guard = CallGuard(context, body)
    prompts = await completion_prompts(body, model, tokens, guard.check_prompt)
    request.state.guardrails = guard.header
    for prompt in prompts:
        check_length(prompt, model.info, param="prompt", answer_room=int(sampling.max_tokens != 0))
    generation = await begin(
        request,
        context,
        body,
        prompts,
        sampling,
        guard,
        candidates=body.candidates,
        continued_tokens=body.continued_tokens or 0,
    )
    answer = CompletionAnswer(body, model, generation)
    if body.stream:
        return await stream_response(context, body, answer.events(), generation.resources)
    return json_response(answer.response_body(await finish(request, context, generation)))
