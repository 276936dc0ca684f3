"""The content blocks of an answer in Anthropic's Messages API, whole and as events of a stream.

Reasoning, text and calls are blocks of their own, in the order in which they arrive. Only one block is open
at a time, and their indices have no gaps.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from app.server.calls.thinking_signature import signature_of
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)

Event = dict[str, Any]


class BlockEvents:
    """Makes the events of the blocks of one answer; feed it the parts, then finish it.

    Args:
        shows_thinking: whether the client wants to see the reasoning.
    """

    def __init__(self, *, shows_thinking: bool = True) -> None:
        self._shows_thinking = shows_thinking
        self._count = 0
        self._open: str | None = None  # type of the open block
        self._thinking: list[str] = []  # of the open block

    def feed(self, part: AnswerPart) -> Iterator[Event]:
        """The events of a part."""
        match part:
            case AnswerText(text):
                if self._open != "text":
                    yield from self._begin({"type": "text", "text": "", "citations": None})
                yield self._delta({"type": "text_delta", "text": text})
            case AnswerReasoning(text):
                if self._open != "thinking":
                    yield from self._begin({"type": "thinking", "thinking": "", "signature": ""})
                self._thinking.append(text)
                if self._shows_thinking:
                    yield self._delta({"type": "thinking_delta", "thinking": text})
            case CallBegun(_, id_, name):
                yield from self._begin(
                    {
                        "type": "tool_use",
                        "id": id_,
                        "name": name,
                        "input": {},
                        "caller": {"type": "direct"},
                    }
                )
            case CallArguments(_, text):
                yield self._delta({"type": "input_json_delta", "partial_json": text})

    def finish(self) -> Iterator[Event]:
        """The end of the open block."""
        if self._open is None:
            return
        if self._open == "thinking":
            text = "".join(self._thinking)
            self._thinking.clear()
            signature = signature_of(text, shown=self._shows_thinking)
            yield self._delta({"type": "signature_delta", "signature": signature})
        self._open = None
        yield {"type": "content_block_stop", "index": self._count - 1}

    def _begin(self, block: Mapping[str, Any]) -> Iterator[Event]:
        yield from self.finish()
        self._open = block["type"]
        self._count += 1
        yield {
            "type": "content_block_start",
            "index": self._count - 1,
            "content_block": block,
        }

    def _delta(self, delta: Mapping[str, Any]) -> Event:
        return {"type": "content_block_delta", "index": self._count - 1, "delta": delta}


def content_blocks(parts: Iterable[AnswerPart], *, shows_thinking: bool = True) -> list[Event]:
    """The blocks of a complete answer: those that the events of a stream add up to."""
    events = BlockEvents(shows_thinking=shows_thinking)
    blocks: list[dict[str, Any]] = []
    arguments: list[str] = []
    for event in [*(one for part in parts for one in events.feed(part)), *events.finish()]:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
            arguments.clear()
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            for member in ("text", "thinking", "signature"):
                if member in delta:
                    blocks[-1][member] += delta[member]
            arguments.append(delta.get("partial_json", ""))
        elif blocks[-1]["type"] == "tool_use":
            blocks[-1]["input"] = _input("".join(arguments))
    return blocks


def _input(arguments: str) -> dict[str, Any]:
    """The arguments of a call; those that a limit has cut are in a member of their own.

    The name of the member is the one that Anthropic's documentation advises for JSON that is none.
    """
    if not arguments:
        return {}
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {"INVALID_JSON": arguments}
    return parsed if isinstance(parsed, dict) else {"INVALID_JSON": arguments}
