"""Answers of OpenAI's Responses and Conversations APIs."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class ResponseInputDetails(Answer):
    """What became of the prompt's tokens."""

    cached_tokens: int
    cache_write_tokens: int


class ResponseOutputDetails(Answer):
    """What the output's tokens are."""

    reasoning_tokens: int


class ResponseUsage(Answer):
    """Token counts."""

    input_tokens: int
    input_tokens_details: ResponseInputDetails
    output_tokens: int
    output_tokens_details: ResponseOutputDetails
    total_tokens: int


class ResponseItem(Answer):
    """An item: a message, reasoning, a call, a search, or what a client has sent."""

    id: str
    type: str


class ResponseError(Answer):
    """Why a response failed."""

    code: str
    message: str


class ResponseObject(Answer):
    """A response."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    background: bool
    error: ResponseError | None
    incomplete_details: dict[str, str] | None
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    model: str
    output: list[ResponseItem]
    parallel_tool_calls: bool
    previous_response_id: str | None
    conversation: dict[str, str] | None
    reasoning: dict[str, str | None]
    service_tier: str
    store: bool
    temperature: float
    text: dict[str, Any]
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_logprobs: int
    top_p: float
    truncation: str
    usage: ResponseUsage | None
    metadata: dict[str, str]


class ResponseEvent(Answer):
    """An event of a stream; its name is its `type`, and numbers have no gap."""

    type: str
    sequence_number: int
    response: ResponseObject | None = None
    """Of the events that begin and end a response."""
    item: ResponseItem | None = None
    item_id: str | None = None
    output_index: int | None = None
    delta: str | None = None


class ResponseInputTokens(Answer):
    """The tokens of a prompt."""

    object: Literal["response.input_tokens"]
    input_tokens: int


class CompactedResponse(Answer):
    """An item that stands for a conversation."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[ResponseItem]
    usage: ResponseUsage


class ConversationObject(Answer):
    """A conversation, without its items."""

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]
