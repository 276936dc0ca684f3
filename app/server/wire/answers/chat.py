"""Answers of chats and completions, and of what is computed beside them."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class PromptTokensDetails(Answer):
    """What became of the prompt's tokens."""

    cached_tokens: int
    """Those that were not computed."""


class CompletionTokensDetails(Answer):
    """What the answer's tokens are."""

    reasoning_tokens: int


class UsageFields(Answer):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails | None = None


class TokenLogprob(Answer):
    """A token with its log-probability."""

    token: str
    logprob: float
    bytes: list[int]


class ChosenTokenLogprob(TokenLogprob):
    """A token of an answer, with the likeliest ones in its place."""

    top_logprobs: list[TokenLogprob]


class ChatLogprobs(Answer):
    """The log-probabilities of an answer."""

    content: list[ChosenTokenLogprob]
    refusal: None


class CalledFunction(Answer):
    """A call of a function; `arguments` is JSON text."""

    name: str
    arguments: str


class AnsweredToolCall(Answer):
    """A call of a tool."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class ChatMessage(Answer):
    """The answer of the assistant."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    annotations: list[dict[str, Any]]
    tool_calls: list[AnsweredToolCall] | None = None
    function_call: CalledFunction | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


ChatFinish = Literal["stop", "length", "tool_calls", "function_call", "content_filter"]


class TimingFields(Answer):
    """Seconds since queueing."""

    scheduled: float | None
    first_token: float | None
    last_token: float | None


class ChoiceFields(Answer):
    """What a request can ask for with each choice."""

    token_ids: list[int] | None = None
    token_id_logprobs: list[list[float]] | None = None
    seed: int | None = None
    cached_tokens: int | None = None
    accepted_drafts: list[int] | None = None
    timings: TimingFields | None = None
    guardrails: list[dict[str, Any]] | None = None
    """What the guardrails found in the text."""
    retrieval: dict[str, Any] | None = None
    """Whether the passages support the answer."""


class ChatChoiceFields(ChoiceFields):
    """One answer."""

    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: ChatFinish


class ChatCompletion(Answer):
    """The answer of a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoiceFields]
    usage: UsageFields
    prompt_logprobs: list[dict[str, Any] | None] | None = None
    retrieval: dict[str, Any] | None = None
    """The passages that the model read."""
    images: list[dict[str, Any]] | None = None
    """How images were read."""


class CalledFunctionDelta(Answer):
    """A piece of a call; the first one has the name."""

    name: str | None = None
    arguments: str


class ToolCallDelta(Answer):
    """A piece of a call of a tool; the first one has the id."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: CalledFunctionDelta


class ChatDelta(Answer):
    """What is new in a choice."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    function_call: CalledFunctionDelta | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    annotations: list[dict[str, Any]] | None = None


class ChatChunkChoice(ChoiceFields):
    """The new piece of one answer."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: ChatFinish | None
    tool_loop: dict[str, Any] | None = None
    """What a tool that the server calls does."""


class ChatCompletionChunk(Answer):
    """A piece of the answer of a chat; behind the last one comes `[DONE]`."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChunkChoice]
    usage: UsageFields | None = None


class ChatControlled(Answer):
    """Whether a running completion was told."""

    id: str
    action: Literal["reasoning_end"]
    success: bool


class LegacyLogprobArrays(Answer):
    """The log-probabilities of a completion, one entry for each token."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class TextChoice(ChoiceFields):
    """One answer, or the new piece of one."""

    index: int
    text: str
    logprobs: LegacyLogprobArrays | None
    finish_reason: Literal["stop", "length", "content_filter"] | None
    prompt_token_ids: list[int] | None = None
    prompt_logprobs: list[dict[str, Any] | None] | None = None


class TextCompletionChunk(Answer):
    """A piece of the answer of a completion; behind the last one comes `[DONE]`."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[TextChoice]
    usage: UsageFields | None = None


class TextCompletion(TextCompletionChunk):
    """The answer of a completion."""

    usage: UsageFields


class InputUsage(Answer):
    """Token counts of what was read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingFields(Answer):
    """The vector of one text: numbers, or base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(Answer):
    """The vectors of texts."""

    object: Literal["list"]
    model: str
    data: list[EmbeddingFields]
    usage: InputUsage


class RankedDocument(Answer):
    """One document, by its place in the request."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class Reranking(Answer):
    """Documents, best first."""

    id: str
    object: Literal["list"]
    model: str
    results: list[RankedDocument]
    usage: InputUsage


class ModerationResult(Answer):
    """What was found in one text."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[str]]
    detections: list[dict[str, Any]]


class Moderation(Answer):
    """What was found in texts."""

    id: str
    model: str
    results: list[ModerationResult]
