"""The start of a plain completion: a request body becomes running choices."""

from starlette.requests import Request

from app.server.calls.best_of import check_best_of
from app.server.calls.generation import Generation, begin
from app.server.calls.guarding import CallGuard
from app.server.calls.infill import completion_prompts, infill_sampling, infill_tokens
from app.server.calls.model import LoadedModel, check_length, loaded_model
from app.server.calls.sampling import completion_sampling
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import CompletionRequest


async def begin_completion(
    request: Request, context: ServerContext, body: CompletionRequest
) -> tuple[LoadedModel, Generation]:
    """Check a completion and submit its choices.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
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
    return model, generation
