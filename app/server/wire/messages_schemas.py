"""Pydantic schemas of the bodies of Anthropic's Messages API.

Its clients send members of many betas, and stop for good at a 400. So members and kinds of blocks and tools
that are not known here are ignored and listed in the response; what is known is checked. Known members that
change no answer here are in `without_effect`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag

from app.server.wire.body import Body
from app.server.wire.schemas import MAX_MESSAGES, StopStrings
from engine.api.request import MAX_CACHE_SALT, MIN_SEED

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Lenient(Body):
    """A body, or an object in one, that ignores members that it does not know."""

    keeps_unknown: ClassVar[bool] = True


class Block(Lenient):
    """A content block. `cache_control` asks for a cached prefix that ends with it."""

    cache_control: dict[str, Any] | None = None
    """Asks for a cached prefix that ends here; every full block is cached anyway."""


class TextBlock(Block):
    """A piece of text."""

    without_effect: ClassVar[Mapping[str, str]] = {"citations": "of an earlier answer"}

    type: Literal["text"]
    """Kind of the object."""
    text: str
    """The text."""


class BlockSource(Lenient):
    """Where an image or a document is; which member there must be depends on `type`."""

    type: str
    """Which of the other members there is."""
    media_type: str | None = None
    """Type of the data; images are known by their bytes."""
    data: str | None = None
    """Base64, or text."""
    url: str | None = None
    """A `data:` URL."""
    file_id: str | None = None
    """Id of an uploaded file."""
    content: "str | list[ContentBlock] | None" = None
    """A text or blocks."""


class ImageBlock(Block):
    """An image: in the request (`base64`), or an uploaded file."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "transformations": "images are read in one way here"
    }

    type: Literal["image"]
    """Kind of the object."""
    source: BlockSource
    """Where the image is."""


class CitationsConfig(Lenient):
    """Whether the answer is to cite the block."""

    enabled: bool | None = None
    """Whether it is."""


class DocumentBlock(Block):
    """A document, of which the model reads the text. Citations that are asked for are reported as ignored."""

    type: Literal["document"]
    """Kind of the object."""
    citations: CitationsConfig | None = None
    """Whether the answer is to cite it; reported as ignored."""
    source: BlockSource
    """Where its text is."""
    title: str | None = None
    """Its title, which the model reads."""
    context: str | None = None
    """A note about it, which the model reads."""


class SearchResultBlock(Block):
    """A passage that a search has found. Citations as in documents."""

    type: Literal["search_result"]
    """Kind of the object."""
    citations: CitationsConfig | None = None
    """Whether the answer is to cite it; reported as ignored."""
    source: str
    """Where it was found."""
    title: str
    """Its title."""
    content: list[TextBlock]
    """Its texts."""


class ToolUseBlock(Block):
    """A call of a tool, by the assistant."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "caller": "every call is the model's own",
        "toolset_name": "a tool's own name says which it is",
    }

    type: Literal["tool_use"]
    """Kind of the object."""
    id: Name
    """Id of the call."""
    name: Name
    """Name of the tool."""
    input: dict[str, Any]
    """Its arguments."""


class ToolReferenceBlock(Block):
    """In the result of a search for tools: a deferred tool that the model may call from now on."""

    type: Literal["tool_reference"]
    """Kind of the object."""
    tool_name: Name
    """Name of the tool."""


class ToolResultBlock(Block):
    """The result of a call."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "toolset_name": "the call says which tool it was"
    }

    type: Literal["tool_result"]
    """Kind of the object."""
    tool_use_id: Name
    """Id of the call."""
    content: "str | list[ContentBlock] | None" = None
    """A text or blocks."""
    is_error: bool | None = None
    """The call failed."""


class ThinkingBlock(Block):
    """Reasoning of the assistant. With `display: omitted` only its signature has the text."""

    type: Literal["thinking"]
    """Kind of the object."""
    thinking: str
    """The reasoning."""
    signature: str | None = None
    """Anything; it has the reasoning where that is empty."""


class RedactedThinkingBlock(Block):
    """Reasoning that another server has encrypted."""

    type: Literal["redacted_thinking"]
    """Kind of the object."""


class CompactionBlock(Block):
    """A summary of messages that the client has left out; null is one that failed."""

    type: Literal["compaction"]
    """Kind of the object."""
    content: str | None = None
    """The summary."""


class ChangedTool(Lenient):
    """The tool that a `tool_addition` or `tool_removal` means; of other kinds there is no name."""

    type: str | None = None
    """Kind of the reference."""
    name: str | None = None
    """Name of the tool."""


class ToolChangeBlock(Block):
    """From this message on a tool is offered, or no longer."""

    type: Literal["tool_addition", "tool_removal"]
    """Kind of the object."""
    tool: ChangedTool
    """The tool."""


class OtherBlock(Block):
    """A block of a kind that means nothing here, such as a result of a server's own tools."""

    model_config = ConfigDict(extra="ignore")  # it is listed as a whole

    type: str
    """Any other kind; the block is ignored and listed."""


_BLOCKS: dict[str, str] = {
    "text": "text",
    "image": "image",
    "document": "document",
    "search_result": "search_result",
    "tool_use": "tool_use",
    "tool_reference": "tool_reference",
    "tool_result": "tool_result",
    "thinking": "thinking",
    "redacted_thinking": "redacted_thinking",
    "compaction": "compaction",
    "tool_addition": "tool_change",
    "tool_removal": "tool_change",
}
"""The kinds of blocks that are known here, and the tags of their classes."""


def _block_tag(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    return _BLOCKS.get(kind, "other") if isinstance(kind, str) else "other"


ContentBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[DocumentBlock, Tag("document")]
    | Annotated[SearchResultBlock, Tag("search_result")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[ToolReferenceBlock, Tag("tool_reference")]
    | Annotated[ToolResultBlock, Tag("tool_result")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[CompactionBlock, Tag("compaction")]
    | Annotated[ToolChangeBlock, Tag("tool_change")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(_block_tag),
]


def _as_blocks(value: Any) -> Any:
    """A text is one block; no content is none."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("must be a string or a list of content blocks")
    return value


Blocks = Annotated[
    list[ContentBlock],
    BeforeValidator(_as_blocks, json_schema_input_type=str | list[ContentBlock] | None),
]


class InputMessage(Lenient):
    """One message. Those of role `system` may stand anywhere."""

    without_effect: ClassVar[Mapping[str, str]] = {"output_config": "the request's own holds"}

    role: Literal["user", "assistant", "system"]
    """Who speaks."""
    content: Annotated[Blocks, Field(default=None, validate_default=True)]
    """A text or blocks."""
    clear_at: str | None = None
    """`next_user_message` leaves the message out once the user has spoken again."""


class ClientTool(Lenient):
    """A tool that the client runs."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "allowed_callers": "every call is the model's own",
        "eager_input_streaming": "arguments are always streamed as they are generated",
    }

    type: Literal["custom"] | None = None
    """`custom`, or nothing."""
    name: Name
    """Name of the tool."""
    description: str | None = None
    """What it does; the model reads it."""
    input_schema: dict[str, Any] | None = None
    """JSON schema of its arguments."""
    input_examples: list[dict[str, Any]] | None = None
    """Examples of arguments, which the model reads."""
    strict: bool | None = None
    """The arguments must match the schema."""
    defer_loading: bool | None = None
    """Offer it only once a reference names it."""
    cache_control: dict[str, Any] | None = None
    """Asks for a cached prefix; every full block is cached anyway."""


class ApiTool(Lenient):
    """One of the API's own tools."""

    model_config = ConfigDict(extra="ignore")  # it is listed as a whole

    type: str
    """A tool of Anthropic's own API; it is skipped and listed."""
    cache_control: dict[str, Any] | None = None
    """Ignored with the tool."""


def _tool_tag(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return "custom" if kind in (None, "custom") else "other"


AnyTool = Annotated[
    Annotated[ClientTool, Tag("custom")] | Annotated[ApiTool, Tag("other")],
    Discriminator(_tool_tag),
]


class ToolUseChoice(Lenient):
    """Whether the model may (`auto`), must (`any`, `tool`) or must not (`none`) call tools."""

    type: Literal["auto", "any", "tool", "none"]
    """Whether the model may, must or must not call tools."""
    name: Name | None = None
    """The tool that it must call."""
    disable_parallel_tool_use: bool | None = None
    """True allows one call an answer."""


class ThinkingConfig(Lenient):
    """How much the model reasons before it answers; unknown types are as good as `adaptive`."""

    type: str
    """`enabled` and `disabled` switch reasoning; any other leaves it to the model."""
    budget_tokens: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Most tokens of reasoning."""
    display: str | None = None
    """`omitted` leaves the reasoning out of the answer."""


class OutputFormat(Lenient):
    """The JSON schema that the answer must match."""

    type: Literal["json_schema"]
    """Kind of the object."""
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    """The JSON schema."""


class OutputConfig(Lenient):
    """How the answer is to be."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "task_budget": "a budget over several requests is the client's"
    }

    effort: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    """How much the model reasons."""
    format: OutputFormat | None = None
    """The JSON schema that the answer must match."""


_NO_EFFECT = {
    "billing_policy": "nothing is billed",
    "compaction": "no summary is written in place of an answer",
    "container": "there are none",
    "context_management": "nothing is left out: the client shortens its conversation",
    "diagnostics": "asks why a prefix was not cached; `usage` has what was",
    "fallback_credit_token": "nothing is billed",
    "fallbacks": "one model answers",
    "inference_geo": "everything is computed on this machine",
    "mcp_servers": "the servers of a request are not asked",
    "service_tier": "there is one tier",
    "speed": "there is one speed",
    "user_profile_id": "the caller's own note; not stored",
    "workspace_id": "as `user_profile_id`",
}
_OF_ANSWERS = (
    "max_tokens",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "stream",
    "seed",
    "cache_salt",
)


class PromptFields(Lenient):
    """What makes the prompt of a message."""

    model: Name
    """Any name: one that the server has is answered by that model, others by the first one."""
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    """The conversation."""
    system: Annotated[Blocks, Field(default=None, validate_default=True)]
    """A text or blocks before it."""
    tools: list[AnyTool] | None = None
    """Tools that the model may call."""
    tool_choice: ToolUseChoice | None = None
    """Whether the model may, must or must not call tools."""
    thinking: ThinkingConfig | None = None
    """How much the model reasons."""
    output_config: OutputConfig | None = None
    """Effort, and the form of the answer."""
    output_format: OutputFormat | None = None
    """As `format` of `output_config`."""
    cache_control: dict[str, Any] | None = None
    """Counts what is cached as created in `usage`."""
    metadata: dict[str, Any] | None = None
    """`user_id` may name the session, as Claude Code writes it; the rest is not stored."""
    thread: dict[str, Any] | None = None
    """Refused: the client sends the whole conversation instead."""


class CountTokensRequest(PromptFields):
    """Body of `POST /v1/messages/count_tokens`."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **_NO_EFFECT,
        **dict.fromkeys(_OF_ANSWERS, "there is no answer"),
    }


class MessagesRequest(PromptFields):
    """Body of `POST /v1/messages`; the last two members are this server's own."""

    without_effect: ClassVar[Mapping[str, str]] = _NO_EFFECT

    max_tokens: Annotated[int, Field(ge=0, lt=2**63)]
    """Most tokens of the answer; 0 only computes the prompt."""
    stop_sequences: StopStrings | None = None
    """Texts before which the answer ends."""
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    """As in chats."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """As in chats."""
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    """As in chats."""
    stream: bool | None = None
    """Send the answer as events while it is generated."""
    seed: Annotated[int, Field(ge=MIN_SEED, lt=2**64)] | None = None
    """As in chats."""
    cache_salt: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CACHE_SALT)] | None
    ) = None
    """As in chats."""
