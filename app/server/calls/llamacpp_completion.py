"""llama.cpp's `/completion` and `/infill`: a body as a plain completion, and its answer in their form."""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request

from app.server.calls.completion import begin_completion
from app.server.calls.generation import Generation, check_finish, finish
from app.server.calls.model import LoadedModel, loaded_model, off_loop
from app.server.calls.prompts import infill_ids, text_ids
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request, from_validation
from app.server.wire.llamacpp_schemas import (
    LlamaCppCompletionRequest,
    LlamaCppInfillRequest,
    LlamaCppSampling,
)
from app.server.wire.logprobs import chat_logprobs
from app.server.wire.schemas import CompletionRequest
from app.server.wire.sse import event
from app.server.wire.usage import Usage
from engine.api.request import NO_LIMIT, FinishReason, RequestOutput, Timings, TokenBatch

_FILE_TOKENS = ("<|file_sep|>", "<file_sep>", "<|file_separator|>")
"""Control tokens that begin a file in prompts of several."""
_SAME_NAMES = (
    "temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "seed", "stop",
    "ignore_eos", "logit_bias", "json_schema", "grammar", "dry_multiplier", "dry_base",
    "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "stream",
)  # fmt: skip


async def completion_prompt(
    context: ServerContext, body: LlamaCppCompletionRequest
) -> list[int] | str:
    """The prompt of a `/completion`; pieces of text and of token ids become ids."""
    if isinstance(body.prompt, str):
        return body.prompt
    model, ids = loaded_model(context, body.model), list[int]()
    for number, piece in enumerate(body.prompt):
        if isinstance(piece, int):
            ids.append(piece)
        else:
            ids += await text_ids(model, piece, add_bos=not number, special=True)
    return ids


async def infill_prompt(context: ServerContext, body: LlamaCppInfillRequest) -> list[int]:
    """The prompt of an `/infill`: other files, the text around the gap, and the middle so far.

    Raises:
        ApiError: 400 for a model without tokens for it.
    """
    model = loaded_model(context, body.model)
    tokens = model.tokenizer.infill
    if tokens is None:
        raise bad_request(
            f"{model.info.name!r} has no tokens for fill-in-the-middle: load a model for code completion.",
            code="unsupported_parameter",
        )
    before = await infill_ids(model, tokens, body.input_prefix, body.input_suffix, add_bos=False)
    size = sum(len(one.text) for one in body.input_extra) + len(body.prompt)
    encode = model.tokenizer.encode
    middle = await off_loop(size, lambda: encode(body.prompt) if body.prompt else [])
    return [*await off_loop(size, lambda: _files(model, body)), *before, *middle]


def _files(model: LoadedModel, body: LlamaCppInfillRequest) -> list[int]:
    """The other files, each after the model's token for one; nothing if it has none."""
    spellings = model.tokenizer.control_tokens.spellings
    file = next((spellings[one] for one in _FILE_TOKENS if one in spellings), None)
    if file is None:
        return []
    ids: list[int] = []
    for one in body.input_extra:
        ids += [file, *model.tokenizer.encode(f"{one.filename}\n{one.text}\n")]
    # The file with the gap has a token of its own, if others stand before it.
    return [*ids, file] if ids else []


class LlamaCppCompletion:
    """Formats one completion."""

    def __init__(self, body: LlamaCppSampling, model: LoadedModel, generation: Generation) -> None:
        self._body = body
        self._model = model
        self._generation = generation
        self._usage = Usage(generation.prompts, generation.n)
        self._has_new_line = False

    @property
    def generation(self) -> Generation:
        """The running choice."""
        return self._generation

    async def whole(self, request: Request, context: ServerContext) -> dict[str, Any]:
        """The answer as one object."""
        (output,) = self._generation.guard.outputs(await finish(request, context, self._generation))
        self._usage.add(0, output)
        return self._piece(output, stop=True) | self._end(output.finish_reason, output)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: pieces, then the object with the counts and times."""
        generation = self._generation
        async for _, batch in generation.guard.batches(generation.choices):
            check_finish(batch)
            self._usage.add(0, batch)
            if batch.text or (batch.token_ids and self._body.return_tokens):
                yield event(self._piece(batch, stop=False))
            if batch.finish_reason is not None:
                empty = {"index": 0, "content": "", "tokens": [], "stop": True}
                yield event(empty | self._end(batch.finish_reason, batch))

    def _piece(self, part: TokenBatch | RequestOutput, *, stop: bool) -> dict[str, Any]:
        self._has_new_line |= "\n" in part.text
        piece: dict[str, Any] = {
            "index": 0,
            "content": part.text,
            "tokens": list(part.token_ids) if self._body.return_tokens else [],
            "stop": stop,
        }
        if self._body.n_probs:
            found = chat_logprobs(
                self._model.tokenizer,
                part.token_ids,
                part.logprobs,
                part.top_logprobs,
                alternatives=self._body.n_probs,
            )
            piece["completion_probabilities"] = [
                {"id": token, **one}
                for token, one in zip(part.token_ids, found["content"], strict=True)
            ]
        return piece

    def _end(self, reason: FinishReason, part: TokenBatch | RequestOutput) -> dict[str, Any]:
        counts = self._usage.counts()
        prompt, cached = counts["prompt_tokens"], counts["prompt_tokens_details"]["cached_tokens"]
        predicted = counts["completion_tokens"]
        return {
            "id_slot": -1,
            "model": self._model.info.name,
            "tokens_predicted": predicted,
            "tokens_evaluated": prompt,
            "tokens_cached": cached,
            "has_new_line": self._has_new_line,
            "truncated": False,
            "stop_type": _stop_type(reason, part.stop_string),
            "stopping_word": part.stop_string or "",
            "timings": timings_of(part.timings, prompt - cached, cached, predicted),
        }


def _stop_type(reason: FinishReason, stop_string: str | None) -> str:
    """llama.cpp's name of why an answer has ended."""
    if reason is FinishReason.LENGTH:
        return "limit"
    return "eos" if stop_string is None else "word"


def timings_of(timings: Timings, read: int, cached: int, written: int) -> dict[str, float | int]:
    """llama.cpp's times, in milliseconds, as the engine measured them."""
    prompt_ms, written_ms = timings.prefill_s * 1000, timings.decode_s * 1000
    return {
        "cache_n": cached,
        "prompt_n": read,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / read if read else 0.0,
        "prompt_per_second": read / prompt_ms * 1000 if prompt_ms else 0.0,
        "predicted_n": written,
        "predicted_ms": written_ms,
        "predicted_per_token_ms": written_ms / written if written else 0.0,
        "predicted_per_second": written / written_ms * 1000 if written_ms else 0.0,
    }


async def begin_llamacpp_completion(
    request: Request, context: ServerContext, body: LlamaCppSampling, prompt: list[int] | str
) -> LlamaCppCompletion:
    """Submit a completion of a prompt.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    limit = body.n_predict if body.n_predict is not None else body.max_tokens
    fields: dict[str, Any] = {
        "model": loaded_model(context, body.model).info.name,
        "prompt": prompt,
        # -2 is another spelling of "until the context is full".
        "max_tokens": NO_LIMIT if limit is None or limit < 0 else limit,
        "repetition_penalty": body.repeat_penalty,
        "logprobs": body.n_probs or None,
        **{name: getattr(body, name) for name in _SAME_NAMES},
    }
    try:
        completion = CompletionRequest.model_validate(fields)
    except ValidationError as error:
        raise from_validation(error.errors()) from None
    model, generation = await begin_completion(request, context, completion)
    return LlamaCppCompletion(body, model, generation)
