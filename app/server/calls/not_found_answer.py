"""The answer of a chat whose vector stores have nothing near enough to its question.

The model is not asked: it would answer from nothing, and a small one does not say so.
"""

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from app.server.calls.chat_images import ChatImages
from app.server.calls.chat_sources import ChatSources
from app.server.calls.model import LoadedModel
from app.server.wire.schemas import ChatCompletionRequest
from app.server.wire.sse import DONE, event
from app.server.wire.usage import Usage
from engine.retrieval.answering.answerer import NOT_FOUND

_CHOICE: dict[str, Any] = {"retrieval": {"supported": False, "dropped_citations": []}}


class NotFoundAnswer:
    """The same sentence for each choice, in the shape of `ChatAnswer`; no tokens are used."""

    def __init__(
        self,
        body: ChatCompletionRequest,
        model: LoadedModel,
        sources: ChatSources,
        images: ChatImages | None,
    ) -> None:
        self._body = body
        self._input = sources.fields() | ({} if images is None else images.fields())
        self._shared = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.info.name,
            "system_fingerprint": model.fingerprint,
        }
        self._usage = Usage((), 1)

    def response_body(self) -> dict[str, Any]:
        """The `chat.completion` object."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": NOT_FOUND,
            "refusal": None,
            "annotations": [],
        }
        choices = [
            {
                "index": index,
                "message": message,
                "logprobs": None,
                "finish_reason": "stop",
                **_CHOICE,
            }
            for index in range(self._body.choices)
        ]
        return {
            **self._shared,
            "object": "chat.completion",
            "choices": choices,
            "usage": self._usage.counts(),
            **self._input,
        }

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream, with the chunks that a generated answer has."""
        first = self._input
        for index in range(self._body.choices):
            yield self._chunk(index, {"role": "assistant", "content": None}, **first)
            first = {}
            yield self._chunk(index, {"content": NOT_FOUND})
            yield self._chunk(index, {"annotations": []}, extras=_CHOICE)
            yield self._chunk(index, {}, finish="stop")
        if self._body.include_usage:
            yield self._event(choices=[], usage=self._usage.counts())
        yield DONE

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        extras: dict[str, Any] | None = None,
        **top: Any,
    ) -> bytes:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish,
            **(extras or {}),
        }
        return self._event(choices=[choice], **self._usage.of_chunk(self._body), **top)

    def _event(self, **rest: Any) -> bytes:
        return event({**self._shared, "object": "chat.completion.chunk", **rest})
