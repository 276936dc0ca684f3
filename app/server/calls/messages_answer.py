"""The answer of `POST /v1/messages`, as one message or as a stream of events."""

import uuid
from collections.abc import AsyncGenerator
from typing import Any

from app.server.calls.chat_choice import AnsweredChoice, ChoiceEnd
from app.server.calls.chat_turn import ChatTurn
from app.server.calls.messages_blocks import BlockEvents, content_blocks
from app.server.calls.messages_request import asks_for_caching
from app.server.wire.messages_schemas import MessagesRequest
from app.server.wire.sse import named_event

PING = named_event({"type": "ping"})

_STOP_REASONS = {"tool_calls": "tool_use", "content_filter": "refusal"}
_NOT_STOPPED = {"stop_reason": None, "stop_sequence": None, "stop_details": None}
_REFUSED = {
    "type": "refusal",
    "category": None,
    "explanation": "The server's guardrails ended the answer.",
}


class MessagesAnswer:
    """Formats a turn as a message."""

    def __init__(self, turn: ChatTurn, body: MessagesRequest) -> None:
        # Not the body itself: it has the images, and an answer may take minutes.
        self._turn = turn
        self._max_tokens = body.max_tokens
        self._stop_sequences = body.stop_sequences or []
        self._id = f"msg_{uuid.uuid4().hex}"
        self._caching = asks_for_caching(body)
        thinking = body.thinking
        self._shows_thinking = thinking is None or thinking.display != "omitted"

    def response_body(self, choice: AnsweredChoice) -> dict[str, Any]:
        """The message."""
        stop_string = None if choice.output is None else choice.output.stop_string
        return self._message(
            content_blocks(choice.parts, shows_thinking=self._shows_thinking),
            self._stop(choice.end, stop_string),
            self._usage(),
        )

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: the message without content at once, its blocks as they arrive, and how it ended.

        Until the prompt is read, the `usage` says that nothing of it was found in the cache; the last one is
        final.
        """
        start = self._message([], _NOT_STOPPED, self._first_usage())
        yield named_event({"type": "message_start", "message": start})
        yield PING
        blocks = BlockEvents(shows_thinking=self._shows_thinking)
        async for piece in self._turn.pieces():
            for part in piece.parts:
                for event in blocks.feed(part):
                    yield named_event(event)
            if piece.end is not None:
                for event in blocks.finish():
                    yield named_event(event)
                stop_string = None if piece.batch is None else piece.batch.stop_string
                delta = self._stop(piece.end, stop_string)
                yield named_event({"type": "message_delta", "delta": delta, "usage": self._usage()})
        yield named_event({"type": "message_stop"})

    def _message(
        self, content: list[dict[str, Any]], stop: dict[str, Any], usage: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._turn.model.info.name,
            "content": content,
            **stop,
            "container": None,
            "usage": usage,
        }

    def _stop(self, end: ChoiceEnd, stop_string: str | None) -> dict[str, Any]:
        """Why the answer ended."""
        sequence = stop_string if stop_string in self._stop_sequences else None
        if end.reason == "length":
            # Without a limit of its own an answer ends where the context does.
            used = self._turn.usage.counts()["completion_tokens"]
            reason = "max_tokens" if used >= self._max_tokens else "model_context_window_exceeded"
        elif end.reason == "stop":
            reason = "end_turn" if sequence is None else "stop_sequence"
        else:
            reason = _STOP_REASONS[end.reason]
        return {
            "stop_reason": reason,
            "stop_sequence": sequence if reason == "stop_sequence" else None,
            "stop_details": _REFUSED if reason == "refusal" else None,
        }

    def _first_usage(self) -> dict[str, Any]:
        prompt = self._turn.usage.counts()["prompt_tokens"]
        return _usage(prompt, read=0, created=0, output=0)

    def _usage(self) -> dict[str, Any]:
        """Measured counts; those of the input add up to the prompt.

        `cache_control` decides nothing here, because every block of a prompt that is full is cached; what
        was computed and is cached now counts as created only for a request that asks for it.
        """
        counts = self._turn.usage.counts()
        prompt = counts["prompt_tokens"]
        # What is generated from may be longer: the opening of a call is not the client's.
        read = min(prompt, counts["prompt_tokens_details"]["cached_tokens"])
        created = 0
        if self._caching:
            size = self._turn.model.engine.snapshot().blocks.block_size or 1
            created = max(0, prompt // size * size - read)
        return _usage(prompt, read=read, created=created, output=counts["completion_tokens"])


def _usage(prompt: int, *, read: int, created: int, output: int) -> dict[str, Any]:
    """The `usage` object; `input_tokens` is the rest of the prompt."""
    return {
        "input_tokens": prompt - read - created,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": created,
        "cache_creation": None,  # by time to live: blocks have none here
        "output_tokens": output,
        "output_tokens_details": None,
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }
