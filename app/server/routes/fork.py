"""`POST /fork`, also as `/v1/branch`: fork a running request into `n` children; `HttpClient.fork` uses it.

The parent is named by its request id: the `request_id` of its call, or `{request_id}-{number}` of a
call with several choices or candidates. A running chat may be named by the id of its completion, which
is its first choice. Omitted fields have the parent's values. The answer is that of a plain completion
whose prompt is the parent's tokens up to the fork.
"""

import secrets
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.completion_answer import CompletionAnswer
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.fanout import Choices
from app.server.calls.generation import Generation, check_choices, finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, loaded_model
from app.server.calls.resumable import check_resumable, stream_response
from app.server.calls.sampling import sampling_fields
from app.server.calls.structured import GRAMMAR_FIELDS, build_grammar
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.chat import TextCompletion, TextCompletionChunk
from app.server.wire.described import answers
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ForkRequest
from engine.api.errors import UnknownRequest
from engine.api.generation_defaults import GenerationDefaults
from engine.api.request import RANDOM_SEED, SamplingParams, new_request_id
from engine.clients.http_wire import FORKED_AT

router = APIRouter(route_class=JsonRoute)

_ENGINE_NAMES = {"include_stop_str_in_output": "include_stop"}


@router.post("/v1/branch")
@router.post("/fork")
@requires("infer")
@answers(TextCompletion, events=TextCompletionChunk)
async def fork(body: ForkRequest, request: Request) -> Response:
    """Fork a running request into `n` children, streamed or whole."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, _model_of_parent(context, body))
    changes = sampling_changes(body, vocab_size=model.info.vocab_size)
    body = body.model_copy(update={"model": model.info.name})
    generation, logprobs = await _begin(request, context, body, changes, model)
    (prompt,) = generation.prompts
    answer = CompletionAnswer(body.model_copy(update={"logprobs": logprobs}), model, generation)
    response: Response
    if body.stream:
        response = await stream_response(context, body, answer.events(), generation.resources)
    else:
        response = json_response(answer.response_body(await finish(request, context, generation)))
    response.headers[FORKED_AT] = str(len(prompt))
    return response


def sampling_changes(body: ForkRequest, *, vocab_size: int) -> dict[str, Any]:
    """The parent's sampling parameters that the body's fields replace, by their name in `SamplingParams`.

    Raises:
        ApiError: 400 for a token id outside the vocabulary, or a field that a fork cannot change.
    """
    for name in ("priority", "service_class", "deadline_ms", "cache_salt"):
        if getattr(body, name) is not None:
            raise bad_request(f"A fork has its parent's `{name}`; omit the field.", param=name)
    params = sampling_fields(
        body,
        logprobs=body.logprobs,
        prompt_logprobs=body.prompt_logprobs,
        vocab_size=vocab_size,
        defaults=GenerationDefaults(),  # what a fork leaves out is its parent's
    )
    declared = body.model_fields_set & set(type(body).model_fields)
    given = {name for name in declared if getattr(body, name) is not None}
    names = {_ENGINE_NAMES.get(name, name) for name in given}
    if given & GRAMMAR_FIELDS:
        names.add("grammar")
    known = set(SamplingParams.__dataclass_fields__)
    changes = {name: getattr(params, name) for name in names & known}
    if body.seed == RANDOM_SEED:
        changes["seed"] = secrets.randbits(64)  # without one it would be the parent's
    return changes


def _model_of_parent(context: ServerContext, body: ForkRequest) -> str | None:
    """The name of the model in whose engine the parent is live, unless the body names one."""
    if body.model is not None or len(context.models.all()) == 1:
        return body.model
    return context.models.engine_of(_request_id(context, body.parent)).config.name


async def _begin(
    request: Request,
    context: ServerContext,
    body: ForkRequest,
    changes: dict[str, Any],
    model: LoadedModel,
) -> tuple[Generation, int | None]:
    """Fork the parent: the children as choices of one prompt, and their `logprobs` parameter.

    Raises:
        ApiError: 400 for too many choices or a grammar that is refused, 404 for an unknown parent,
            503 while draining.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    n = body.choices
    check_choices(context, n, 1)
    check_resumable(context, body)
    base = body.request_id or new_request_id()
    async with AsyncExitStack() as stack:
        stack.enter_context(context.drain.work())
        await build_grammar(request, context, body, changes.get("grammar"))
        parent_id = _request_id(context, body.parent)
        # The parent may run in an engine that a reload has replaced.
        engine = context.models.engine_of(parent_id, model.info.name)
        try:
            handles = engine.fork(
                parent_id,
                at=body.at,
                n=n,
                sampling=lambda parent: replace(parent, **changes),
                request_ids=[base] if n == 1 else [f"{base}-{index}" for index in range(n)],
            )
        except UnknownRequest as error:
            raise ApiError(404, str(error), param="parent", code="request_not_found") from None
        choices = Choices(handles)
        stack.callback(choices.abort)
        first = handles[0].request
        generation = Generation(
            [first.prompt_ids], n, choices, stack.pop_all(), CallGuard(context, body)
        )
        return generation, first.sampling.logprobs
    raise AssertionError("an exit stack never swallows an exception")


def _request_id(context: ServerContext, parent: str) -> str:
    """The engine's id of a parent, which may be the id of a running chat completion."""
    turn = context.running_turns.get(parent)
    return parent if turn is None else next(iter(turn.request_ids), parent)
