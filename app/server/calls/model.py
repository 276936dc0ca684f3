"""The one model that this server has loaded, and checks of requests against it."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, bad_request, unavailable
from engine.api.errors import ContextLengthExceeded, exceeding
from engine.api.snapshot import EngineState, ModelInfo
from engine.runtime.engine import AsyncPravahaEngine
from engine.text.tokenizer import Tokenizer

Result = TypeVar("Result")

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


def loaded_model(context: ServerContext, name: str | None) -> LoadedModel:
    """The loaded model; `name`, if given, must be its name.

    Raises:
        ApiError: 404 for another name, 503 while the model is loading.
    """
    if name is not None:
        check_name(context, name)
    info = context.engine.snapshot().model
    if info is None:
        raise _without_model(context)
    return LoadedModel(info, context.engine, context.engine.tokenizer)


def _without_model(context: ServerContext) -> ApiError:
    snapshot = context.engine.snapshot()
    if snapshot.state is EngineState.UNLOADED:
        reason = snapshot.last_error or "No model is loaded."
        return unavailable(reason, code="model_not_loaded")
    return unavailable("The model is still loading.", code="model_loading")


def check_name(context: ServerContext, name: str) -> None:
    """Refuse any name but that of the served model.

    Raises:
        ApiError: 404.
    """
    served = context.engine.config.name
    if name != served:
        raise ApiError(
            404,
            f"There is no model {name[:80]!r} here; this server has {served!r}.",
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
