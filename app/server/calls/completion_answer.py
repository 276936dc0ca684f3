"""The answer of `POST /v1/completions` and of `POST /fork`, as one object or as a stream of chunks."""

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from app.server.calls.best_of import best_candidates
from app.server.calls.generation import Generation, check_finish
from app.server.calls.model import LoadedModel
from app.server.wire.extensions import choice_extras, wants_every_token
from app.server.wire.logprobs import LegacyLogprobs, vllm_prompt_logprobs
from app.server.wire.schemas import CompletionRequest, ForkRequest
from app.server.wire.sse import DONE, event
from app.server.wire.usage import Usage
from engine.api.request import PromptLogprobs, RequestOutput, TokenBatch


class CompletionAnswer:
    """Formats the engine's output; all chunks share id, time, model and fingerprint."""

    def __init__(
        self, body: CompletionRequest | ForkRequest, model: LoadedModel, generation: Generation
    ) -> None:
        self._body = body
        self._model = model
        self._generation = generation
        self._n = body.choices
        self._usage = Usage(generation.prompts, generation.n)
        self._shared = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model.info.name,
            "system_fingerprint": model.fingerprint,
        }
        self._legacy: dict[int, LegacyLogprobs] = {}
        # By prompt: choices share what they say about it, which may be megabytes.
        self._prompt_entries: dict[int, list[dict[str, dict[str, Any]] | None]] = {}
        self._echoed: dict[int, tuple[LegacyLogprobs, dict[str, Any]]] = {}

    def response_body(self, outputs: list[RequestOutput]) -> dict[str, Any]:
        """The `text_completion` object; usage also counts candidates that were not chosen."""
        best = best_candidates(outputs, n=self._n, candidates=self._generation.n)
        choices = [
            self._choice(index, output, self._echo(index) + output.text, first=True)
            for index, output in enumerate(self._generation.guard.outputs(best))
        ]
        return self._envelope(choices=choices, usage=self._usage.add_all(outputs).counts())

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: text, the last chunk with the finish reason; usage if requested; DONE."""
        begun: set[int] = set()
        body = self._body
        scored = body.logprobs is not None or body.prompt_logprobs is not None
        every_token = scored or wants_every_token(body)
        async for index, batch in self._generation.guard.batches(self._generation.choices):
            check_finish(batch)
            self._usage.add(index, batch)
            first = index not in begun
            text = (self._echo(index) if first else "") + batch.text
            if text or batch.finish_reason is not None or (batch.token_ids and every_token):
                begun.add(index)
                choice = self._choice(index, batch, text, first=first)
                yield event(self._envelope(choices=[choice], **self._usage.of_chunk(body)))
        if self._body.include_usage:
            yield event(self._envelope(choices=[], usage=self._usage.counts()))
        yield DONE

    def _choice(
        self, index: int, part: RequestOutput | TokenBatch, text: str, *, first: bool
    ) -> dict[str, Any]:
        extras = choice_extras(self._body, part)
        if first and self._body.return_token_ids:
            extras["prompt_token_ids"] = list(self._prompt(index))
        if first and self._body.prompt_logprobs is not None and part.prompt_logprobs is not None:
            extras["prompt_logprobs"] = self._prompt_logprobs(
                index, part.prompt_logprobs, self._body.prompt_logprobs
            )
        return {
            "index": index,
            "text": text,
            "logprobs": self._logprobs(index, part, first=first),
            "finish_reason": part.finish_reason and part.finish_reason.value,
            **extras,
            **(self._generation.guard.found(index) if part.finish_reason else {}),
        }

    def _prompt(self, index: int) -> tuple[int, ...]:
        return self._generation.prompts[index // self._n]

    def _echo(self, index: int) -> str:
        if not self._body.echo:
            return ""
        given = self._body.prompts[index // self._n]
        return given if isinstance(given, str) else self._model.tokenizer.decode(given)

    def _envelope(self, **rest: Any) -> dict[str, Any]:
        return {**self._shared, **rest}

    def _logprobs(
        self, index: int, part: RequestOutput | TokenBatch, *, first: bool
    ) -> dict[str, Any] | None:
        if self._body.logprobs is None:
            return None
        echoed: dict[str, Any] = {}
        if self._body.echo and first and part.prompt_logprobs is not None:
            after, echoed = self._echo_logprobs(index, part.prompt_logprobs, self._body.logprobs)
            self._legacy[index] = after.continued()
        elif index not in self._legacy:
            self._legacy[index] = self._new_legacy(self._body.logprobs)
        answer = self._legacy[index].arrays(part.token_ids, part.logprobs, part.top_logprobs)
        return {
            name: None if values is None else [*echoed.get(name, ()), *values]
            for name, values in answer.items()
        }

    def _new_legacy(self, alternatives: int) -> LegacyLogprobs:
        by_id = bool(self._body.return_tokens_as_token_ids)
        return LegacyLogprobs(self._model.tokenizer, alternatives=alternatives, by_id=by_id)

    def _echo_logprobs(
        self, index: int, scores: PromptLogprobs, alternatives: int
    ) -> tuple[LegacyLogprobs, dict[str, Any]]:
        """The arrays of a choice's echoed prompt, and the object that continues them."""
        number = index // self._n
        if number not in self._echoed:
            prompt, legacy = self._prompt(index), self._new_legacy(alternatives)
            hidden = self._hidden(index, prompt)
            self._echoed[number] = legacy, legacy.prompt_arrays(prompt, scores, hidden=hidden)
        return self._echoed[number]

    def _prompt_logprobs(
        self, index: int, scores: PromptLogprobs, alternatives: int
    ) -> list[dict[str, dict[str, Any]] | None]:
        """VLLM's `prompt_logprobs` of a choice."""
        number = index // self._n
        if number not in self._prompt_entries:
            self._prompt_entries[number] = vllm_prompt_logprobs(
                self._model.tokenizer, self._prompt(index), scores, alternatives=alternatives
            )
        return self._prompt_entries[number]

    def _hidden(self, index: int, prompt: tuple[int, ...]) -> frozenset[int]:
        """Tokens of a prompt that its echo omits: the control tokens of a prompt given as ids.

        A prompt given as text is echoed unchanged, so that only a BOS token can be missing.
        """
        tokenizer = self._model.tokenizer
        given = self._body.prompts[index // self._n]
        if not isinstance(given, str):
            return tokenizer.special_ids
        bos = tokenizer.bos_id
        if bos is None or prompt[0] != bos:
            return frozenset()
        spelled = given.startswith(tokenizer.token_bytes(bos).decode(errors="replace"))
        return frozenset() if spelled else frozenset({bos})
