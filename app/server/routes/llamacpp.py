"""llama.cpp's own endpoints: `/completion`, `/infill`, `/props` and `/slots`.

Plug-ins of editors use them. `/health`, `/tokenize`, `/detokenize` and `/apply-template` are
those of other clients, too.
"""

from importlib import metadata

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.event_stream import EventStream
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.llamacpp_completion import (
    LlamaCppCompletion,
    begin_llamacpp_completion,
    completion_prompt,
    infill_prompt,
)
from app.server.calls.model import engine_named, loaded_model
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.llamacpp import LlamaCppPiece, LlamaCppProps, LlamaCppSlot
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.llamacpp_schemas import LlamaCppCompletionRequest, LlamaCppInfillRequest
from engine.api.request_status import RequestState

router = APIRouter(route_class=JsonRoute)
"""After the routes of OpenAI's paths, which these do not touch."""


@router.post("/completion")
@requires("infer")
@answers(LlamaCppPiece, events=LlamaCppPiece)
async def complete(body: LlamaCppCompletionRequest, request: Request) -> Response:
    """Continue a prompt."""
    context = server_context(request)
    check_extra_fields(request, body)
    prompt = await completion_prompt(context, body)
    completion = await begin_llamacpp_completion(request, context, body, prompt)
    return await _answered(request, context, body.stream, completion)


@router.post("/infill")
@requires("infer")
@answers(LlamaCppPiece, events=LlamaCppPiece)
async def fill_in(body: LlamaCppInfillRequest, request: Request) -> Response:
    """Write the text between two texts."""
    context = server_context(request)
    check_extra_fields(request, body)
    prompt = await infill_prompt(context, body)
    completion = await begin_llamacpp_completion(request, context, body, prompt)
    return await _answered(request, context, body.stream, completion)


async def _answered(
    request: Request, context: ServerContext, stream: bool | None, completion: LlamaCppCompletion
) -> Response:
    if stream:
        return EventStream(completion.events(), context, completion.generation.resources)
    return json_response(await completion.whole(request, context))


@router.get("/props")
@requires("infer")
@answers(LlamaCppProps)
async def props(request: Request) -> Response:
    """What the server is: context length, number of rows, chat template, what the model takes."""
    context = server_context(request)
    model = loaded_model(context, None)
    tokenizer, info = model.tokenizer, model.info
    settings = {
        "id": 0,
        "n_ctx": info.context_length,
        "params": info.generation_defaults.values(),
    }
    return json_response(
        {
            "default_generation_settings": settings,
            "total_slots": model.engine.config.max_num_seqs,
            "model_alias": info.name,
            "model_path": info.name,  # not the path: it is nothing that clients need to know
            "chat_template": tokenizer.chat_template,
            "bos_token": tokenizer.named_token("bos_token"),
            "eos_token": tokenizer.named_token("eos_token"),
            "modalities": {"vision": info.sees_images, "audio": False, "video": False},
            "build_info": f"pravaha {metadata.version('pravaha')}",
        }
    )


@router.get("/slots")
@requires("metrics")
@answers(list[LlamaCppSlot])
async def slots(request: Request) -> Response:
    """The rows of the engine as llama.cpp's slots: the live requests, then free rows. No texts."""
    context = server_context(request)
    engine = engine_named(context, None)  # looking keeps no model loaded
    info = engine.snapshot().model
    context_length = 0 if info is None else info.context_length
    live = [
        {
            "id": number,
            "id_task": number,
            "n_ctx": context_length,
            "is_processing": one.state is not RequestState.QUEUED,
            "n_prompt_tokens": one.prompt_tokens,
            "n_prompt_tokens_processed": min(one.computed_tokens, one.prompt_tokens),
            "next_token": [{"n_decoded": one.generated_tokens, "has_next_token": True}],
        }
        for number, one in enumerate(engine.request_table())
    ]
    rows = range(len(live), max(len(live), engine.config.max_num_seqs))
    free = [{"id": row, "n_ctx": context_length, "is_processing": False} for row in rows]
    return json_response([*live, *free])
