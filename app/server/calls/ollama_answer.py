"""Answers in Ollama's form: one JSON object, or one for each line of a stream."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from app.server.calls.chat_choice import AnsweredCall, AnsweredChoice
from app.server.calls.chat_turn import ChatTurn
from app.server.wire.instant import rfc3339
from app.server.wire.logprobs import chat_logprobs
from app.server.wire.usage import Usage
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)
from engine.api.request import RequestOutput, Timings, TokenBatch

NANOSECONDS = 1_000_000_000

Payload = Callable[[str, str, Sequence[AnsweredCall]], dict[str, Any]]
"""The members that carry a text, a reasoning and calls: of a chat, or of `/api/generate`."""


def chat_payload(text: str, thinking: str, calls: Sequence[AnsweredCall]) -> dict[str, Any]:
    """The members of `/api/chat`: a message."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "function": {
                    "index": index,
                    "name": call.name,
                    "arguments": arguments_of(call.arguments),
                },
            }
            for index, call in enumerate(calls)
        ]
    return {"message": message}


def generate_payload(text: str, thinking: str, _: Sequence[AnsweredCall]) -> dict[str, Any]:
    """The members of `/api/generate`, which has no calls."""
    return {"response": text, "thinking": thinking} if thinking else {"response": text}


def arguments_of(text: str) -> dict[str, Any]:
    """The object of a call's arguments; empty if a limit has cut them."""
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def line(data: dict[str, Any]) -> bytes:
    """One line of a stream."""
    return orjson.dumps(data) + b"\n"


class OllamaAnswer:
    """Formats one turn."""

    def __init__(
        self, turn: ChatTurn, name: str, payload: Payload, *, with_context: bool = False
    ) -> None:
        """Format a turn.

        Args:
            turn: the turn.
            name: of the model, as the client wrote it.
            payload: the members that carry the answer.
            with_context: whether the end has the token ids of prompt and answer.
        """
        self._turn = turn
        self._name = name
        self._payload = payload
        self._with_context = with_context
        self._began = time.monotonic_ns()
        self._ids: list[int] = []

    def keep_alive(self) -> bytes:
        """A line that says nothing: the protocol has no comments."""
        return line(self._line("", "", (), done=False))

    def whole(self, choice: AnsweredChoice) -> dict[str, Any]:
        """The answer as one object."""
        output = choice.output
        if output is not None:
            self._ids += output.token_ids
        timings = None if output is None else output.timings
        answer = self._line(choice.text, choice.reasoning, choice.calls, done=True)
        logprobs = {} if output is None else self._logprobs(output)
        return answer | self._end(choice.end.reason, timings) | logprobs

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the stream. A call is written when it is complete, and before the last line."""
        calls = _Calls()
        async for piece in self._turn.pieces():
            text = "".join(one.text for one in piece.parts if isinstance(one, AnswerText))
            thinking = "".join(one.text for one in piece.parts if isinstance(one, AnswerReasoning))
            if piece.batch is not None:
                self._ids += piece.batch.token_ids
            complete = calls.add(piece.parts, is_last=piece.end is not None)
            logprobs = {} if piece.batch is None else self._logprobs(piece.batch)
            if text or thinking or complete or logprobs:
                yield line(self._line(text, thinking, complete, done=False) | logprobs)
            if piece.end is not None:
                timings = None if piece.batch is None else piece.batch.timings
                end = self._end(piece.end.reason, timings)
                yield line(self._line("", "", (), done=True) | end)

    def _line(
        self, text: str, thinking: str, calls: Sequence[AnsweredCall], *, done: bool
    ) -> dict[str, Any]:
        return {
            "model": self._name,
            "created_at": rfc3339(datetime.now(UTC)),
            **self._payload(text, thinking, calls),
            "done": done,
        }

    def _end(self, reason: str, timings: Timings | None) -> dict[str, Any]:
        end: dict[str, Any] = {
            "done_reason": "length" if reason == "length" else "stop",
            **durations(self._turn.usage, timings, time.monotonic_ns() - self._began),
        }
        generation = self._turn.generation
        if self._with_context and generation is not None:
            end["context"] = [*generation.prompts[0], *self._ids]
        return end

    def _logprobs(self, part: RequestOutput | TokenBatch) -> dict[str, Any]:
        if not self._turn.body.logprobs or not part.token_ids:
            return {}
        found = chat_logprobs(
            self._turn.model.tokenizer,
            part.token_ids,
            part.logprobs,
            part.top_logprobs,
            alternatives=self._turn.body.top_logprobs or 0,
        )
        return {"logprobs": found["content"]}


class _Calls:
    """Collects the calls of a stream until each is complete: the next one begins, or the answer ends."""

    def __init__(self) -> None:
        self._open: CallBegun | None = None
        self._arguments = ""

    def add(self, parts: Sequence[AnswerPart], *, is_last: bool) -> list[AnsweredCall]:
        """The calls that are complete after these parts."""
        complete: list[AnsweredCall] = []
        for part in parts:
            if isinstance(part, CallBegun):
                complete += self._close()
                self._open = part
            elif isinstance(part, CallArguments):
                self._arguments += part.text
        if is_last:
            complete += self._close()
        return complete

    def _close(self) -> list[AnsweredCall]:
        if self._open is None:
            return []
        call = AnsweredCall(self._open.id, self._open.name, self._arguments)
        self._open, self._arguments = None, ""
        return [call]


def durations(usage: Usage, timings: Timings | None, total_ns: int) -> dict[str, int]:
    """Token counts, and times in nanoseconds as the engine measured them."""
    counts = usage.counts()
    read = written = 0
    if timings is not None:
        read = round(timings.prefill_s * NANOSECONDS)
        written = round(timings.decode_s * NANOSECONDS)
    return {
        "total_duration": total_ns,
        "load_duration": 0,
        "prompt_eval_count": counts["prompt_tokens"],
        "prompt_eval_duration": read,
        "eval_count": counts["completion_tokens"],
        "eval_duration": written,
    }
