"""`/api/generate` of prompts that are no conversation: `raw`, with a `suffix`, or after a `context`."""

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request

from app.server.calls.completion import begin_completion
from app.server.calls.generation import Generation, check_finish, finish
from app.server.calls.model import LoadedModel, loaded_model, off_loop
from app.server.calls.ollama_answer import durations, line
from app.server.calls.ollama_request import format_fields, sampling_fields
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request, from_validation
from app.server.wire.instant import rfc3339
from app.server.wire.ollama_schemas import OllamaGenerateRequest, OllamaOptions
from app.server.wire.schemas import CompletionRequest
from app.server.wire.usage import Usage
from engine.api.request import NO_LIMIT, Timings


class OllamaCompletion:
    """Formats one plain completion."""

    def __init__(self, body: OllamaGenerateRequest, generation: Generation) -> None:
        self._body = body
        self._generation = generation
        self._usage = Usage(generation.prompts, generation.n)
        self._ids: list[int] = []
        self._began = time.monotonic_ns()

    @property
    def resources(self) -> AsyncExitStack:
        """To be closed, which also aborts what runs."""
        return self._generation.resources

    def keep_alive(self) -> bytes:
        """A line that says nothing."""
        return line(self._line("", done=False))

    async def whole(self, request: Request, context: ServerContext) -> dict[str, Any]:
        """The answer as one object."""
        (output,) = self._generation.guard.outputs(await finish(request, context, self._generation))
        self._usage.add(0, output)
        self._ids += output.token_ids
        end = self._end(output.finish_reason.value, output.timings)
        return self._line(output.text, done=True) | end

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the stream."""
        generation = self._generation
        async for _, batch in generation.guard.batches(generation.choices):
            check_finish(batch)
            self._usage.add(0, batch)
            self._ids += batch.token_ids
            if batch.text:
                yield line(self._line(batch.text, done=False))
            if batch.finish_reason is not None:
                end = self._end(batch.finish_reason.value, batch.timings)
                yield line(self._line("", done=True) | end)

    def _line(self, text: str, *, done: bool) -> dict[str, Any]:
        now = rfc3339(datetime.now(UTC))
        return {"model": self._body.model, "created_at": now, "response": text, "done": done}

    def _end(self, reason: str, timings: Timings | None) -> dict[str, Any]:
        end: dict[str, Any] = {
            "done_reason": "length" if reason == "length" else "stop",
            **durations(self._usage, timings, time.monotonic_ns() - self._began),
        }
        if not self._body.raw and not self._body.suffix:  # Ollama has none there
            end["context"] = [*self._generation.prompts[0], *self._ids]
        return end


async def begin_ollama_completion(
    request: Request, context: ServerContext, body: OllamaGenerateRequest, name: str
) -> OllamaCompletion:
    """Submit a completion.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    if body.images:
        raise bad_request("`images` are only read in a conversation.", param="images")
    fields: dict[str, Any] = {
        "model": name,
        "keep_alive": body.keep_alive,
        "prompt": await _prompt(body, loaded_model(context, name)),
        "max_tokens": NO_LIMIT,
        **sampling_fields(body.options or OllamaOptions()),
        **format_fields(body.format),
    }
    if body.suffix:
        fields["suffix"] = body.suffix
    try:
        completion = CompletionRequest.model_validate(fields)
    except ValidationError as error:
        raise from_validation(error.errors()) from None
    _, generation = await begin_completion(request, context, completion)
    return OllamaCompletion(body, generation)


async def _prompt(body: OllamaGenerateRequest, model: LoadedModel) -> str | list[int]:
    """The prompt: as it is, or a turn after the tokens of an earlier answer."""
    text = body.prompt or ""
    if body.raw or body.suffix:
        return text
    messages = [{"role": "system", "content": body.system}] if body.system else []
    messages.append({"role": "user", "content": text})
    size = sum(len(one["content"]) for one in messages)
    turn = await off_loop(size, lambda: model.tokenizer.encode_chat(messages))
    # The answer before it has ended with its turn, but for one that a limit has cut.
    return [*(body.context or ()), *turn]
