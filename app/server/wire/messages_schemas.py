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


class TextBlock(Block):
    """A piece of text."""

    without_effect: ClassVar[Mapping[str, str]] = {"citations": "of an earlier answer"}

    type: Literal["text"]
    text: str


class BlockSource(Lenient):
    """Where an image or a document is; which member there must be depends on `type`."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: "str | list[ContentBlock] | None" = None


class ImageBlock(Block):
    """An image: in the request (`base64`), or an uploaded file."""

    type: Literal["image"]
    source: BlockSource


class CitationsConfig(Lenient):
    """Whether the answer is to cite the block."""

    enabled: bool | None = None


class DocumentBlock(Block):
    """A document, of which the model reads the text. Citations that are asked for are reported as ignored."""

    type: Literal["document"]
    citations: CitationsConfig | None = None
    source: BlockSource
    title: str | None = None
    context: str | None = None


class SearchResultBlock(Block):
    """A passage that a search has found. Citations as in documents."""

    type: Literal["search_result"]
    citations: CitationsConfig | None = None
    source: str
    title: str
    content: list[TextBlock]


class ToolUseBlock(Block):
    """A call of a tool, by the assistant."""

    without_effect: ClassVar[Mapping[str, str]] = {"caller": "every call is the model's own"}

    type: Literal["tool_use"]
    id: Name
    name: Name
    input: dict[str, Any]


class ToolReferenceBlock(Block):
    """In the result of a search for tools: a deferred tool that the model may call from now on."""

    type: Literal["tool_reference"]
    tool_name: Name


class ToolResultBlock(Block):
    """The result of a call."""

    type: Literal["tool_result"]
    tool_use_id: Name
    content: "str | list[ContentBlock] | None" = None
    is_error: bool | None = None


class ThinkingBlock(Block):
    """Reasoning of the assistant. With `display: omitted` only its signature has the text."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(Block):
    """Reasoning that another server has encrypted."""

    type: Literal["redacted_thinking"]


class CompactionBlock(Block):
    """A summary of messages that the client has left out; null is one that failed."""

    type: Literal["compaction"]
    content: str | None = None


class ChangedTool(Lenient):
    """The tool that a `tool_addition` or `tool_removal` means; of other kinds there is no name."""

    type: str | None = None
    name: str | None = None


class ToolChangeBlock(Block):
    """From this message on a tool is offered, or no longer."""

    type: Literal["tool_addition", "tool_removal"]
    tool: ChangedTool


class OtherBlock(Block):
    """A block of a kind that means nothing here, such as a result of a server's own tools."""

    model_config = ConfigDict(extra="ignore")  # it is listed as a whole

    type: str


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


Blocks = Annotated[list[ContentBlock], BeforeValidator(_as_blocks)]


class InputMessage(Lenient):
    """One message. Those of role `system` may stand anywhere."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[Blocks, Field(default=None, validate_default=True)]
    clear_at: str | None = None


class ClientTool(Lenient):
    """A tool that the client runs."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "allowed_callers": "every call is the model's own",
        "eager_input_streaming": "arguments are always streamed as they are generated",
    }

    type: Literal["custom"] | None = None
    name: Name
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    input_examples: list[dict[str, Any]] | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    cache_control: dict[str, Any] | None = None


class ApiTool(Lenient):
    """One of the API's own tools."""

    model_config = ConfigDict(extra="ignore")  # it is listed as a whole

    type: str
    cache_control: dict[str, Any] | None = None


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
    name: Name | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingConfig(Lenient):
    """How much the model reasons before it answers; unknown types are as good as `adaptive`."""

    type: str
    budget_tokens: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    display: str | None = None


class OutputFormat(Lenient):
    """The JSON schema that the answer must match."""

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class OutputConfig(Lenient):
    """How the answer is to be."""

    effort: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    format: OutputFormat | None = None


_NO_EFFECT = {
    "diagnostics": "asks why a prefix was not cached; `usage` has what was",
    "inference_geo": "everything is computed on this machine",
    "metadata": "the caller's own notes; not stored",
    "service_tier": "there is one tier",
    "speed": "there is one speed",
    "user_profile_id": "as `metadata`",
    "workspace_id": "as `metadata`",
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
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    system: Annotated[Blocks, Field(default=None, validate_default=True)]
    tools: list[AnyTool] | None = None
    tool_choice: ToolUseChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    cache_control: dict[str, Any] | None = None
    thread: dict[str, Any] | None = None


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
    stop_sequences: StopStrings | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    stream: bool | None = None
    seed: Annotated[int, Field(ge=MIN_SEED, lt=2**64)] | None = None
    cache_salt: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CACHE_SALT)] | None
    ) = None
