"""The model that a request names, and checks of requests against it."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Query

from app.server.process.context import ServerContext
from app.server.process.request_models import current_request_models
from app.server.wire.errors import ApiError, bad_request, unavailable
from engine.api.errors import ContextLengthExceeded, ModelError, ModelNotFound, exceeding
from engine.api.snapshot import EngineState, ModelInfo
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_model import ServedModel
from engine.text.tokenizer import Tokenizer

Result = TypeVar("Result")

ModelName = Annotated[str | None, Query(min_length=1, max_length=256)]
"""The query parameter of routes that look at the engine of a model."""

OFF_LOOP_CHARS = 4096
"""Longer texts are tokenised in a thread, because the event loop serves all requests."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A loaded model, the engine that runs it, and its tokenizer."""

    info: ModelInfo
    engine: AsyncPravahaEngine
    tokenizer: Tokenizer

    @property
    def fingerprint(self) -> str:
        """OpenAI's `system_fingerprint`: while it is the same, equal seeds give equal answers."""
        parts = (
            self.info.name,
            self.info.weight_format,
            self.info.kv_dtype,
            self.info.executor,
            self.info.dispatch,
            self.tokenizer.fingerprint,
        )
        return "fp_" + hashlib.blake2b("\0".join(parts).encode(), digest_size=5).hexdigest()


def loaded_model(
    context: ServerContext, name: str | None, *, keep_alive_s: float | None = None
) -> LoadedModel:
    """The model of a name or an alias, which stays loaded until the request is answered.

    A request that calls this before it begins to answer waits for a model that is not loaded: see
    `app.server.middleware.model_waits`.

    Args:
        context: the server.
        name: the name; None for the primary model.
        keep_alive_s: seconds for which the model stays loaded after this request and later ones; None
            changes nothing.

    Raises:
        ApiError: 404 for another name, 503 while the model is loading or if there is none.
        ModelLoading: the model is being loaded.
    """
    engine = engine_used(context, name, keep_alive_s=keep_alive_s)
    info = engine.snapshot().model
    if info is None:
        raise _without_model(engine)
    return LoadedModel(info, engine, engine.tokenizer)


def engine_used(
    context: ServerContext, name: str | None, *, keep_alive_s: float | None = None
) -> AsyncPravahaEngine:
    """The engine of `loaded_model`, which has no model if the only one failed or is still loading.

    Raises:
        ApiError: 404 for another name.
        ModelLoading: as `loaded_model`.
    """
    request = current_request_models.get()
    try:
        if request is not None:
            return request.take(name, keep_alive_s)
        lease = context.models.use(name, keep_alive_s=keep_alive_s)
        context.models.release(lease)
        return lease.model.engine
    except ModelNotFound as error:
        raise unknown_model(context, name or "") from error
    except ModelError as error:
        raise unavailable(str(error), code="model_not_loaded") from error


def engine_named(context: ServerContext, name: str | None) -> AsyncPravahaEngine:
    """The engine of a model, whether or not the model is loaded; for what only looks at it.

    Args:
        context: the server.
        name: a name or an alias; None for the primary model.

    Raises:
        ApiError: 404, no such model was loaded yet.
    """
    return served_named(context, name).engine


def served_named(context: ServerContext, name: str | None) -> ServedModel:
    """A model, as `engine_named`."""
    model = context.models.find(name)
    if model is None:
        raise unknown_model(context, name or "")
    return model


def _without_model(engine: AsyncPravahaEngine) -> ApiError:
    snapshot = engine.snapshot()
    if snapshot.state is EngineState.UNLOADED:
        reason = snapshot.last_error or "No model is loaded."
        return unavailable(reason, code="model_not_loaded")
    return unavailable("The model is still loading.", code="model_loading")


def check_name(context: ServerContext, name: str) -> None:
    """Refuse any name but those of served models, which may not be loaded.

    Raises:
        ApiError: 404.
    """
    if context.models.find(name) is None:
        raise unknown_model(context, name)


def unknown_model(context: ServerContext, name: str) -> ApiError:
    """The 404 for a name that no served model has."""
    served = [one.name for one in context.models.all()]
    return ApiError(
        404,
        f"There is no model {name[:80]!r} here; this server has {', '.join(map(repr, served))}.",
        param="model",
        code="model_not_found",
    )


async def off_loop(size: int, work: Callable[[], Result]) -> Result:
    """Run a computation on `size` characters: on the event loop if short, otherwise in a thread."""
    return work() if size < OFF_LOOP_CHARS else await asyncio.to_thread(work)


def check_length(
    prompt: tuple[int, ...], info: ModelInfo, *, param: str, answer_room: int = 1
) -> None:
    """Refuse a prompt that leaves no room for an answer of `answer_room` tokens.

    Raises:
        ApiError: 400, it has no tokens.
        ContextLengthExceeded: it has too many.
    """
    if not prompt:
        raise bad_request("The prompt has no tokens.", param=param)
    if len(prompt) + answer_room > info.context_length:
        raise ContextLengthExceeded(
            exceeding(len(prompt), info.context_length - answer_room),
            info.context_length,
            param=param,
            includes_answer=answer_room > 0,
        )
