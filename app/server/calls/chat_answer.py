"""The answer of `POST /v1/chat/completions`, as one object or as a stream of chunks."""

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from app.server.calls.chat_images import ChatImages
from app.server.calls.chat_sources import ChatSources
from app.server.calls.cited_choice import CitedChoice
from app.server.calls.generation import Generation, check_finish
from app.server.calls.model import LoadedModel
from app.server.calls.structured import grammar_of
from app.server.wire.extensions import choice_extras, wants_every_token
from app.server.wire.logprobs import chat_logprobs, vllm_prompt_logprobs
from app.server.wire.schemas import ChatCompletionRequest
from app.server.wire.sse import DONE, event
from app.server.wire.usage import Usage
from engine.api.request import RequestOutput, TokenBatch


class ChatAnswer:
    """Formats the engine's output; all chunks share id, time, model and fingerprint."""

    def __init__(
        self,
        body: ChatCompletionRequest,
        model: LoadedModel,
        generation: Generation,
        sources: ChatSources | None = None,
        images: ChatImages | None = None,
    ) -> None:
        """Format the answer of one call.

        Args:
            body: the request body.
            model: the model.
            generation: the running choices.
            sources: the passages that the answer cites; None for a chat without retrieval.
            images: the images in the messages; None for a chat without any.
        """
        self._body = body
        self._model = model
        self._generation = generation
        self._sources = sources
        self._images = images
        self._usage = Usage(generation.prompts, generation.n)
        self._shared = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.info.name,
            "system_fingerprint": model.fingerprint,
        }

    async def response_body(self, outputs: list[RequestOutput]) -> dict[str, Any]:
        """The `chat.completion` object."""
        outputs = self._generation.guard.outputs(outputs)
        return self._envelope(
            "chat.completion",
            choices=[await self._choice(index, output) for index, output in enumerate(outputs)],
            usage=self._usage.add_all(outputs).counts(),
            **self._prompt_logprobs(outputs[0]),
            **self._input(),
        )

    async def _choice(self, index: int, output: RequestOutput) -> dict[str, Any]:
        text, finish, annotations, extras = output.text, output.finish_reason.value, [], {}
        if self._sources is not None:
            cited = self._cited(self._sources)
            text = await cited.feed(text) + await cited.finish()
            annotations, extras = cited.annotations(), cited.fields()
            finish = "stop" if cited.ended else finish
        return {
            "index": index,
            "message": {
                "role": "assistant",
                "content": text,
                "refusal": None,
                "annotations": annotations,
            },
            "logprobs": self._logprobs(output),
            "finish_reason": finish,
            **choice_extras(self._body, output),
            **self._generation.guard.found(index),
            **extras,
        }

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: role, text and finish of each choice, then usage if requested, then DONE."""
        begun: set[int] = set()
        cited: dict[int, CitedChoice] = {}
        every_token = self._body.logprobs or wants_every_token(self._body)
        guard, choices = self._generation.guard, self._generation.choices
        async for index, batch in guard.batches(choices):
            if index in cited and cited[index].ended:
                continue  # aborted below
            check_finish(batch)
            self._usage.add(index, batch)
            if index not in begun:
                yield self._first_chunk(index, with_input=not begun)
                begun.add(index)
                if self._sources is not None:
                    cited[index] = self._cited(self._sources)
            text, finish = batch.text, batch.finish_reason and batch.finish_reason.value
            if index in cited:
                text = await cited[index].feed(text)
                if cited[index].ended:
                    choices.abort_choice(index)
                    finish = "stop"
                if finish is not None:
                    text += await cited[index].finish()
            # Text can lag behind its tokens: an incomplete character, a possible stop string or citation.
            if text or (batch.token_ids and every_token):
                yield self._chunk(
                    index,
                    {"content": text},
                    logprobs=self._logprobs(batch),
                    **choice_extras(self._body, batch),
                )
            if finish is not None:
                if index in cited:
                    delta = {"annotations": cited[index].annotations()}
                    yield self._chunk(index, delta, **cited[index].fields())
                yield self._chunk(index, {}, finish=finish, **guard.found(index))
        if self._body.include_usage:
            counts = self._usage.counts()
            yield event(self._envelope("chat.completion.chunk", choices=[], usage=counts))
        yield DONE

    def _cited(self, sources: ChatSources) -> CitedChoice:
        # The text must be that of the ids, or match the grammar that the request has given.
        keeps_text = bool(self._body.return_token_ids) or grammar_of(self._body) is not None
        return CitedChoice(sources, self._model, keeps_text=keeps_text)

    def _first_chunk(self, index: int, *, with_input: bool) -> bytes:
        """The role; the first one of the call also says what the model reads."""
        top = self._input() if with_input else {}
        return self._chunk(index, {"role": "assistant", "content": None}, top=top)

    def _input(self) -> dict[str, Any]:
        """What the model reads beside the messages: passages and images."""
        retrieval = {} if self._sources is None else self._sources.fields()
        images = {} if self._images is None else self._images.fields()
        return retrieval | images

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        logprobs: dict[str, Any] | None = None,
        top: dict[str, Any] | None = None,
        **extras: Any,
    ) -> bytes:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
            **extras,
        }
        rest = self._usage.of_chunk(self._body) | (top or {})
        return event(self._envelope("chat.completion.chunk", choices=[choice], **rest))

    def _envelope(self, kind: str, **rest: Any) -> dict[str, Any]:
        return {**self._shared, "object": kind, **rest}

    def _prompt_logprobs(self, output: RequestOutput) -> dict[str, Any]:
        """VLLM's `prompt_logprobs` member; all choices of a chat have the same prompt."""
        wanted, scores = self._body.prompt_logprobs, output.prompt_logprobs
        if wanted is None or scores is None:
            return {}
        prompt = self._generation.prompts[0]
        entries = vllm_prompt_logprobs(self._model.tokenizer, prompt, scores, alternatives=wanted)
        return {"prompt_logprobs": entries}

    def _logprobs(self, part: RequestOutput | TokenBatch) -> dict[str, Any] | None:
        if not self._body.logprobs:
            return None
        return chat_logprobs(
            self._model.tokenizer,
            part.token_ids,
            part.logprobs,
            part.top_logprobs,
            alternatives=self._body.top_logprobs or 0,
        )
