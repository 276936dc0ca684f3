"""The answer of `POST /v1/chat/completions`, as one object or as a stream of chunks."""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from app.server.calls.chat_choice import AnsweredCall, AnsweredChoice, ChoiceEnd, TurnPiece
from app.server.calls.chat_turn import ChatTurn
from app.server.calls.loop_turn import LoopTurn
from app.server.wire.extensions import choice_extras, wants_every_token
from app.server.wire.logprobs import chat_logprobs, vllm_prompt_logprobs
from app.server.wire.sse import DONE, event
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)
from engine.api.request import RequestOutput, TokenBatch


class ChatAnswer:
    """Formats a turn; all chunks share id, time, model and fingerprint."""

    def __init__(self, turn: ChatTurn | LoopTurn) -> None:
        self._turn = turn
        self._body = turn.body
        self._shared = {
            "id": turn.id,
            "created": int(time.time()),
            "model": turn.model.info.name,
            "system_fingerprint": turn.model.fingerprint,
        }

    def response_body(self, choices: Sequence[AnsweredChoice]) -> dict[str, Any]:
        """The `chat.completion` object."""
        return self._envelope(
            "chat.completion",
            choices=[self._choice(index, choice) for index, choice in enumerate(choices)],
            usage=self._turn.usage.counts(),
            **self._prompt_logprobs(choices[0].output),
            **self._turn.input_fields,
        )

    def _choice(self, index: int, choice: AnsweredChoice) -> dict[str, Any]:
        calls = choice.calls
        message: dict[str, Any] = {
            "role": "assistant",
            "content": choice.text if choice.text or not calls else None,
            "refusal": None,
            "annotations": choice.end.annotations or [],
        }
        if choice.reasoning:
            message |= _reasoning(choice.reasoning)
        if calls and self._body.answers_function_call:
            message["function_call"] = _call(calls[0])["function"]
        elif calls:
            message["tool_calls"] = [_call(call) for call in calls]
        extras = {} if choice.output is None else choice_extras(self._body, choice.output)
        return {
            "index": index,
            "message": message,
            "logprobs": None if choice.output is None else self._logprobs(choice.output),
            "finish_reason": self._finish_reason(choice.end),
            **extras,
            **choice.end.fields,
        }

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: role, parts and finish of each choice, then usage if requested, then DONE."""
        begun: set[int] = set()
        async for piece in self._turn.pieces():
            if piece.choice not in begun:
                yield self._first_chunk(piece.choice, with_input=not begun)
                begun.add(piece.choice)
            for chunk in self._part_chunks(piece):
                yield chunk
            if piece.loop_event is not None:
                yield self._chunk(piece.choice, {}, tool_loop=piece.loop_event)
            if piece.end is not None:
                for chunk in self._end_chunks(piece.choice, piece.end):
                    yield chunk
        if self._body.include_usage:
            counts = self._turn.usage.counts()
            yield event(self._envelope("chat.completion.chunk", choices=[], usage=counts))
        yield DONE

    def _part_chunks(self, piece: TurnPiece) -> Iterator[bytes]:
        """A chunk for each part; the tokens are reported with the first of them."""
        old = self._body.answers_function_call
        deltas = [_old_delta(part) if old else _delta(part) for part in piece.parts]
        if piece.batch is None:
            for delta in deltas:
                yield self._chunk(piece.choice, delta)
            return
        # Text can lag behind its tokens: an incomplete character, a possible stop string, citation or call.
        every_token = self._body.logprobs or wants_every_token(self._body)
        if not deltas and piece.batch.token_ids and every_token:
            deltas = [{"content": ""}]
        for number, delta in enumerate(deltas):
            if number:
                yield self._chunk(piece.choice, delta)
                continue
            yield self._chunk(
                piece.choice,
                delta,
                logprobs=self._logprobs(piece.batch),
                **choice_extras(self._body, piece.batch),
            )

    def _end_chunks(self, index: int, end: ChoiceEnd) -> Iterator[bytes]:
        fields = dict(end.fields)
        if end.annotations is not None:
            retrieval = {"retrieval": fields.pop("retrieval")} if "retrieval" in fields else {}
            yield self._chunk(index, {"annotations": end.annotations}, **retrieval)
        yield self._chunk(index, {}, finish=self._finish_reason(end), **fields)

    def _finish_reason(self, end: ChoiceEnd) -> str:
        is_old = self._body.answers_function_call and end.reason == "tool_calls"
        return "function_call" if is_old else end.reason

    def _first_chunk(self, index: int, *, with_input: bool) -> bytes:
        """The role; the first one of the call also says what the model reads."""
        top = self._turn.input_fields if with_input else {}
        return self._chunk(index, {"role": "assistant", "content": None}, top=top)

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
        rest = self._turn.usage.of_chunk(self._body) | (top or {})
        return event(self._envelope("chat.completion.chunk", choices=[choice], **rest))

    def _envelope(self, kind: str, **rest: Any) -> dict[str, Any]:
        return {**self._shared, "object": kind, **rest}

    def _prompt_logprobs(self, output: RequestOutput | None) -> dict[str, Any]:
        """VLLM's `prompt_logprobs` member; all choices of a chat have the same prompt."""
        wanted, generation = self._body.prompt_logprobs, self._turn.generation
        if wanted is None or generation is None or output is None or not output.prompt_logprobs:
            return {}
        tokenizer = self._turn.model.tokenizer
        entries = vllm_prompt_logprobs(
            tokenizer, generation.prompts[0], output.prompt_logprobs, alternatives=wanted
        )
        return {"prompt_logprobs": entries}

    def _logprobs(self, part: RequestOutput | TokenBatch) -> dict[str, Any] | None:
        if not self._body.logprobs:
            return None
        return chat_logprobs(
            self._turn.model.tokenizer,
            part.token_ids,
            part.logprobs,
            part.top_logprobs,
            alternatives=self._body.top_logprobs or 0,
        )


def _delta(part: AnswerPart) -> dict[str, Any]:
    """The `delta` of a part. Every piece of a call has its index; only the first its id and name."""
    match part:
        case AnswerText(text):
            return {"content": text}
        case AnswerReasoning(text):
            return _reasoning(text)
        case CallBegun(index, id_, name):
            function = {"name": name, "arguments": ""}
            call = {"index": index, "id": id_, "type": "function", "function": function}
            return {"tool_calls": [call]}
        case CallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _old_delta(part: AnswerPart) -> dict[str, Any]:
    """The `delta` of a part for clients of OpenAI's old `functions`, which know one call."""
    match part:
        case CallBegun(_, _, name):
            return {"function_call": {"name": name, "arguments": ""}}
        case CallArguments(_, text):
            return {"function_call": {"arguments": text}}
        case _:
            return _delta(part)


def _reasoning(text: str) -> dict[str, str]:
    """Reasoning under both names: DeepSeek's and vLLM's, and OpenRouter's."""
    return {"reasoning_content": text, "reasoning": text}


def _call(call: AnsweredCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
