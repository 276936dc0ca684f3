"""Answers of Anthropic's Messages API."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class MessageUsage(Answer):
    """Token counts; the three of the input add up to the prompt."""

    input_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    output_tokens: int


class MessageContent(Answer):
    """A block: text, reasoning, or a call of a tool."""

    type: Literal["text", "thinking", "tool_use"]


class MessageAnswer(Answer):
    """A message of the assistant."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[MessageContent]
    stop_reason: (
        Literal[
            "end_turn",
            "max_tokens",
            "stop_sequence",
            "tool_use",
            "refusal",
            "model_context_window_exceeded",
        ]
        | None
    )
    stop_sequence: str | None
    usage: MessageUsage


class MessageEvent(Answer):
    """An event of a stream; its name is its `type`."""

    type: Literal[
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ]
    message: MessageAnswer | None = None
    index: int | None = None
    content_block: MessageContent | None = None
    delta: dict[str, Any] | None = None
    usage: MessageUsage | None = None


class MessageTokens(Answer):
    """The tokens of a prompt."""

    input_tokens: int
