"""Pydantic schemas of the bodies of OpenAI's Responses API and Conversations API.

Agents stop for good at a 400. So members, items and tools that are not known here are ignored and listed in
the response; what is known is checked. Items and tools are read by `calls.responses_input` and
`calls.responses_tools`, because there are too many kinds of them that only pass through.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.server.wire.body import Body, IsOff, nothing
from app.server.wire.generation_fields import WITHOUT_EFFECT
from app.server.wire.schemas import MAX_LOGPROBS, ReasoningEffort, TemplateVariables
from engine.api.request import NO_LIMIT

MAX_ITEMS = 8192
MAX_TOOLS = 1024
MAX_METADATA = 16
MAX_CONVERSATION_ITEMS = 20
"""Items that a conversation is created with, or gets at a time; OpenAI's limit."""

ResponseId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=MAX_METADATA),
]
"""The caller's own notes; kept and given back."""

Items = Annotated[list[dict[str, Any]], Field(max_length=MAX_ITEMS)]
ItemsOrText = str | Items

_CACHE_HINTS = {
    name: WITHOUT_EFFECT[name] for name in ("prompt_cache_options", "prompt_cache_retention")
}


def _not_zero(limit: int) -> int:
    if limit == 0:
        raise ValueError(f"must be at least 1, or {NO_LIMIT} for no limit")
    return limit


OutputLimit = Annotated[int, Field(ge=NO_LIMIT, lt=2**63), AfterValidator(_not_zero)]


class TextFormat(Body):
    """The form of the text: free, a JSON object, or one that matches a schema."""

    keeps_unknown: ClassVar[bool] = True

    type: Literal["text", "json_object", "json_schema"]
    """Free text, any JSON object, or JSON that matches a schema."""
    name: str | None = None
    """Name of the schema."""
    description: str | None = None
    """What the schema is for."""
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    """The JSON schema."""
    strict: bool | None = None
    """Enforced or not, the schema always holds."""


class TextOptions(Body):
    """How the text is to be written."""

    keeps_unknown: ClassVar[bool] = True

    format: TextFormat | None = None
    """The form of the text."""
    verbosity: str | None = None
    """A hint to models that are trained for it; it is only given back."""


class ReasoningOptions(Body):
    """How much to think before the answer."""

    keeps_unknown: ClassVar[bool] = True
    without_effect: ClassVar[Mapping[str, str]] = {
        "context": "all reasoning that is sent is read",
        "mode": "there is one",
    }

    effort: ReasoningEffort | None = None
    """As `reasoning_effort` of a chat."""
    summary: str | None = None
    """`auto`, `concise` or `detailed`: the reasoning comes as the summary of its item."""
    generate_summary: str | None = None
    """The older name of `summary`."""

    @property
    def asks_for_summary(self) -> bool:
        """Whether the reasoning is to come as a summary, of whatever length."""
        return (self.summary or self.generate_summary or "none") != "none"


class ConversationReference(Body):
    """A conversation by its id."""

    keeps_unknown: ClassVar[bool] = True

    id: ResponseId
    """Its id."""


class InputFields(Body):
    """Fields of a conversation so far."""

    keeps_unknown: ClassVar[bool] = True

    model: ModelName
    """Name or alias of the model."""
    input: ItemsOrText | None = None
    """A text, or a list of items."""
    instructions: str | None = None
    """A message of the system before all others; not kept."""
    previous_response_id: ResponseId | None = None
    """Go on from this response."""

    @property
    def conversation_id(self) -> str | None:
        """The id of the conversation that it belongs to."""
        return None


class ContextFields(InputFields):
    """Fields that say what the model reads."""

    conversation: ResponseId | ConversationReference | None = None
    """Go on from this conversation, and add to it."""
    tools: Annotated[list[dict[str, Any]], Field(max_length=MAX_TOOLS)] | None = None
    """Tools that the model may call."""
    tool_choice: str | dict[str, Any] | None = None
    """`auto`, `none`, `required`, or a tool."""
    parallel_tool_calls: bool | None = None
    """False allows one call an answer."""
    text: TextOptions | None = None
    """The form of the text."""
    reasoning: ReasoningOptions | None = None
    """How much the model reasons."""
    truncation: Literal["auto", "disabled"] | None = None
    """`auto` leaves out the oldest messages where the prompt is too long."""

    @property
    def conversation_id(self) -> str | None:
        """The id of the conversation that it belongs to."""
        given = self.conversation
        return given.id if isinstance(given, ConversationReference) else given


class ResponseRequest(ContextFields):
    """Body of `POST /v1/responses`.

    Fields of the type `Any` are those of chat completions, which check them.
    """

    without_effect: ClassVar[Mapping[str, str]] = {
        **_CACHE_HINTS,
        "access_programs": "there are none",
        "background_options": "there is one way to run in the background",
        "client_metadata": "the client's own notes; not stored",
        "context_management": "clients compact: `truncation` and `/v1/responses/compact` are there for it",
        "image": "images are read in one way here",
        "moderation": "the server's own guardrails decide",
        "stream_options": "streams are not obfuscated, and always end with the usage",
        "verbosity": "it belongs into `text`; a hint only",
    }
    unsupported: ClassVar[Mapping[str, IsOff]] = {"prompt": nothing}

    stream: bool | None = None
    """Send events while the answer is generated."""
    background: bool | None = None
    """Answer at once, and go on without the client."""
    store: bool | None = None
    """False keeps nothing."""
    include: list[str] | None = None
    """More members of the output: log-probabilities, results of searches."""
    max_output_tokens: OutputLimit | None = None
    """Most tokens of the output; -1 is no limit but the context."""
    max_tool_calls: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Most calls of MCP servers that are made."""
    metadata: Metadata | None = None
    """The caller's own notes; kept and given back."""
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """Log-probabilities of the text's tokens, with so many alternatives."""
    prompt_cache_key: str | None = None
    """Name of the session; given back."""
    safety_identifier: str | None = None
    """Only given back."""
    service_tier: str | None = None
    """There is one; given back as `default`."""
    user: str | None = None
    """Only given back."""
    temperature: Any = None
    """As in chats."""
    top_p: Any = None
    """As in chats."""
    top_k: Any = None
    """As in chats."""
    min_p: Any = None
    """As in chats."""
    presence_penalty: Any = None
    """As in chats."""
    frequency_penalty: Any = None
    """As in chats."""
    repetition_penalty: Any = None
    """As in chats."""
    logit_bias: Any = None
    """As in chats."""
    seed: Any = None
    """As in chats."""
    stop: Any = None
    """As in chats."""
    stop_token_ids: Any = None
    """As in chats."""
    ignore_eos: Any = None
    """As in chats."""
    service_class: Any = None
    """As in chats."""
    priority: Any = None
    """As in chats."""
    deadline_ms: Any = None
    """As in chats."""
    cache_salt: Any = None
    """As in chats."""
    enable_thinking: Any = None
    """As in chats."""
    chat_template_kwargs: TemplateVariables | None = None
    """As in chats."""

    @property
    def is_stored(self) -> bool:
        """Whether the response is kept, which is OpenAI's default."""
        return self.store is not False

    @property
    def wants_logprobs(self) -> bool:
        """Whether the text comes with the log-probabilities of its tokens."""
        return bool(self.top_logprobs) or "message.output_text.logprobs" in (self.include or ())


PASSED_FIELDS = (
    "prompt_cache_key",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "seed",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "service_class",
    "priority",
    "deadline_ms",
    "cache_salt",
    "enable_thinking",
    "chat_template_kwargs",
)
"""Fields that chat completions have under the same names."""


class InputTokensRequest(ContextFields):
    """Body of `POST /v1/responses/input_tokens`."""

    without_effect: ClassVar[Mapping[str, str]] = {"personality": "there is one"}


class CompactRequest(InputFields):
    """Body of `POST /v1/responses/compact`."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **_CACHE_HINTS,
        "client_metadata": "the client's own notes; not stored",
        "image": "images are left out of a summary",
        "parallel_tool_calls": "the summary calls no tools",
        "prompt_cache_key": "one server has one cache",
        "reasoning": "the summary is written without",
        "service_tier": "there is one tier",
        "text": "the summary is plain text",
        "tools": "the summary calls no tools",
    }


ConversationItems = Annotated[list[dict[str, Any]], Field(max_length=MAX_CONVERSATION_ITEMS)]


class CreateConversation(Body):
    """Body of `POST /v1/conversations`."""

    keeps_unknown: ClassVar[bool] = True

    items: ConversationItems | None = None
    """Its first items."""
    metadata: Metadata | None = None
    """The caller's own notes."""


class UpdateConversation(Body):
    """Body of `POST /v1/conversations/{id}`."""

    keeps_unknown: ClassVar[bool] = True

    metadata: Metadata | None = None
    """The new notes; without them nothing changes."""


class CreateConversationItems(Body):
    """Body of `POST /v1/conversations/{id}/items`."""

    keeps_unknown: ClassVar[bool] = True

    items: ConversationItems
    """Items to append."""
