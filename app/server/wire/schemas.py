"""Pydantic schemas of the request bodies: types and ranges of single fields.

Rules between fields and rules that need the model (the vocabulary, the context length) are checked in
`calls`; the engine validates requests again. Types are strict: a boolean is not an integer and "5" is
not a number. Undeclared fields are kept in `model_extra`, which `fields.unknown_fields` checks.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    model_validator,
)

from agents.runs.approvals import Decision
from app.server.wire.assistant_parts import with_plain_parts
from app.server.wire.body import (
    IMAGE_TAG,
    TEXT_TAG,
    Body,
    DefaultedBody,
    IsOff,
    nothing,
    nothing_or,
)
from app.server.wire.keep_alive import KeepAlive
from app.server.wire.old_functions import with_tool_calls
from app.server.wire.retrieval_schemas import ChatRetrieval
from app.server.wire.tool_schemas import (
    FunctionChoiceField,
    Functions,
    ToolChoiceField,
    ToolLoopBody,
    Tools,
    functions_of,
)
from engine.api.request import (
    MAX_CACHE_SALT,
    MAX_DEADLINE_MS,
    MAX_STOP_STRINGS,
    MIN_SEED,
    NO_LIMIT,
)
from engine.api.residency import new_pin_id
from engine.api.scheduling import MAX_STEP_TARGET_MS, MIN_STEP_TARGET_MS, BatchFormerName, Policy
from engine.api.service_class import ServiceClass
from engine.api.tools import Tool, ToolChoice, ToolDecision
from engine.runtime.model_change import CHANGE_DRAIN_S, MAX_CHANGE_DRAIN_S

MAX_MESSAGES = 4096
MAX_TOOL_CALLS = 128
MAX_BIASES = 1024
MAX_STOP_TOKENS = 12
MAX_SHOWN_TOKENS = 64
MAX_BREAKERS = 16
MAX_BREAKER_CHARS = 40
MAX_LOGPROBS = 20
MAX_LOGPROB_TOKENS = 64
COMPLETION_DEFAULT_TOKENS = 16

TokenId = Annotated[int, Field(ge=0, lt=2**31)]


def _not_zero(limit: int) -> int:
    if limit == 0:
        raise ValueError(f"must be at least 1, or {NO_LIMIT} for no limit")
    return limit


_MaybeNoTokens = Annotated[int, Field(ge=NO_LIMIT, lt=2**63)]
_TokenLimit = Annotated[_MaybeNoTokens, AfterValidator(_not_zero)]


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _parse_bias(value: Any) -> Any:
    """JSON keys are strings; convert them to token ids."""
    if not isinstance(value, dict):
        return value
    if not all(isinstance(key, str) and key.isascii() and key.isdecimal() for key in value):
        raise ValueError("keys must be token ids written as decimal numbers")
    if any(len(key) > 10 for key in value):
        raise ValueError("a key is not a token id: it has too many digits")
    return {int(key): bias for key, bias in value.items()}


def _stop_strings(value: Any) -> Any:
    """One or many stop strings, each once; an empty one stops nothing and is left out."""
    strings = _one_or_many(value)
    if isinstance(strings, list) and all(isinstance(one, str) for one in strings):
        return [one for one in dict.fromkeys(strings) if one]
    return strings


StopStrings = Annotated[
    list[Annotated[str, StringConstraints(max_length=1024)]],
    BeforeValidator(_stop_strings),
    Field(max_length=MAX_STOP_STRINGS),
]


class StreamOptions(Body):
    """Options of a streamed answer."""

    # It pads chunks against a listener who measures them.
    unsupported: ClassVar[Mapping[str, IsOff]] = {"include_obfuscation": nothing_or(False)}

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class JsonSchemaFormat(Body):
    """The `json_schema` of a response format. It is enforced whatever the value of `strict`."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    description: str | None = None
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool | None = None


class ResponseFormat(Body):
    """OpenAI's field for JSON output; with `schema` as llama.cpp, Together and Fireworks have it."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None


JsonSchema = str | bool | dict[str, Any]
"""A JSON schema, or its text."""

Choices = Annotated[list[Annotated[str, StringConstraints(min_length=1)]], Field(min_length=1)]


class StructuredOutputs(Body):
    """vLLM's field for structured output; at most one member may be given."""

    unsupported: ClassVar[Mapping[str, IsOff]] = {
        "disable_additional_properties": nothing_or(False),
        "disable_any_whitespace": nothing_or(False),
        "disable_fallback": nothing_or(False),
        "structural_tag": nothing,
        "whitespace_pattern": nothing,
    }

    json_: Annotated[JsonSchema | None, Field(alias="json")] = None
    regex: str | None = None
    choice: Choices | None = None
    grammar: str | None = None
    json_object: bool | None = None


class SamplingFields(Body):
    """Fields that chat and plain completions share. None means the model's default, else the API's."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    keep_alive: KeepAlive | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    dry_multiplier: Annotated[float, Field(ge=0, le=100)] | None = None
    dry_base: Annotated[float, Field(ge=1, le=100)] | None = None
    dry_allowed_length: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    dry_penalty_last_n: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    dry_sequence_breakers: (
        Annotated[
            list[Annotated[str, StringConstraints(min_length=1, max_length=MAX_BREAKER_CHARS)]],
            Field(max_length=MAX_BREAKERS),
        ]
        | None
    ) = None
    logit_bias: (
        Annotated[
            dict[TokenId, Annotated[float, Field(ge=-100, le=100)]],
            BeforeValidator(_parse_bias),
            Field(max_length=MAX_BIASES),
        ]
        | None
    ) = None
    seed: Annotated[int, Field(ge=MIN_SEED, lt=2**64)] | None = None
    stop: StopStrings | None = None
    stop_token_ids: Annotated[list[TokenId], Field(max_length=MAX_STOP_TOKENS)] | None = None
    shown_control_ids: Annotated[list[TokenId], Field(max_length=MAX_SHOWN_TOKENS)] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    json_schema: JsonSchema | None = None
    guided_json: JsonSchema | None = None
    guided_regex: str | None = None
    guided_choice: Choices | None = None
    guided_grammar: str | None = None
    grammar: str | None = None
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    service_class: ServiceClass | None = None
    deadline_ms: Annotated[float, Field(gt=0, le=MAX_DEADLINE_MS)] | None = None
    cache_salt: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CACHE_SALT)] | None
    ) = None
    n: Annotated[int, Field(ge=1, le=2**31)] | None = None
    max_tokens: _TokenLimit | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    prompt_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    logprob_token_ids: Annotated[list[TokenId], Field(max_length=MAX_LOGPROB_TOKENS)] | None = None
    return_token_ids: bool | None = None
    return_timings: bool | None = None
    request_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")] | None = None
    resumable: bool | None = None

    @property
    def token_limit(self) -> int | None:
        """Limit of an answer in tokens, `NO_LIMIT` included; None if the request has none."""
        return self.max_tokens

    @property
    def choices(self) -> int:
        """Answers to give for each prompt."""
        return self.n or 1

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def usage_in_chunks(self) -> bool:
        """Whether every chunk of a stream has the usage so far (vLLM's option)."""
        options = self.stream_options
        return options is not None and bool(options.continuous_usage_stats)


def _no_detail(detail: str | None) -> str | None:
    if detail not in (None, "auto"):
        raise ValueError("images are read in one way here; leave it out, or send 'auto'")
    return detail


_CACHE_HINTS = {
    "prompt_cache_breakpoint": "every prefix is cached until its blocks are needed",
    "cache_control": "Anthropic's name of it",
}


class TextPart(Body):
    """A piece of text inside a message's content."""

    without_effect: ClassVar[Mapping[str, str]] = _CACHE_HINTS
    keeps_unknown: ClassVar[bool] = True

    type: Literal["text"]
    text: str


class ImageUrl(Body):
    """Where an image is: in the URL itself (`data:`), or the id of an uploaded file."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "format": "litellm's media type; types are found by contents"
    }

    url: Annotated[str, StringConstraints(min_length=1)]
    detail: Annotated[Literal["auto", "low", "high"] | None, AfterValidator(_no_detail)] = None


class ImagePart(Body):
    """An image inside a message's content."""

    without_effect: ClassVar[Mapping[str, str]] = _CACHE_HINTS
    keeps_unknown: ClassVar[bool] = True

    type: Literal["image_url"]
    image_url: ImageUrl


def _part_tag(part: Any) -> str:
    """The class of a content part that `_as_parts` accepted."""
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return IMAGE_TAG if kind == "image_url" else TEXT_TAG


ContentPart = Annotated[
    Annotated[TextPart, Tag(TEXT_TAG)] | Annotated[ImagePart, Tag(IMAGE_TAG)],
    Discriminator(_part_tag),
]


def _as_parts(value: Any, info: ValidationInfo) -> Any:
    """A string becomes one part; a part of another type is refused with its type.

    Only the assistant and a tool may say nothing: null or no content is an empty list there. Only the
    user shows images.
    """
    if value is None and info.data.get("role") in ("assistant", "tool"):
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise ValueError("must be a string or a list of content parts")
    for part in value:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "image_url":
            if info.data.get("role") != "user":
                raise ValueError("only messages of the role 'user' have images")
        elif isinstance(kind, str) and kind != "text":
            raise ValueError(f"content parts of type {kind[:40]!r} are not supported yet")
    return value


class FunctionCall(Body):
    """The function of a tool call; `arguments` is an object or its JSON text, as the model wrote it."""

    keeps_unknown: ClassVar[bool] = True

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    arguments: str | dict[str, Any]


class ToolCall(DefaultedBody):
    """A call in a message of the assistant."""

    keeps_unknown: ClassVar[bool] = True

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    type: Literal["function"] = "function"
    function: FunctionCall


def _only_of_assistant(calls: list[ToolCall] | None, info: ValidationInfo) -> Any:
    if calls and info.data.get("role") != "assistant":
        raise ValueError("only messages of the role 'assistant' have tool calls")
    return calls


def _only_of_tool(call_id: str | None, info: ValidationInfo) -> Any:
    if (call_id is None) == (info.data.get("role") == "tool"):
        raise ValueError("it belongs to messages of the role 'tool', all of which need it")
    return call_id


def _only_in_answers(value: Any, info: ValidationInfo) -> Any:
    if value is not None and info.data.get("role") != "assistant":
        raise ValueError("only messages of the role 'assistant' have it")
    return value


class Message(Body):
    """One turn of a conversation. Of the assistant's there are the forms that other servers answer with."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **_CACHE_HINTS,
        "annotations": "citations of an earlier answer, which no model reads",
        "name": "a participant's name; chat templates here do not use it",
    }
    unsupported: ClassVar[Mapping[str, IsOff]] = {"audio": nothing, "function_call": nothing}
    keeps_unknown: ClassVar[bool] = True

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[
        list[ContentPart], BeforeValidator(_as_parts), Field(default=None, validate_default=True)
    ]
    tool_calls: Annotated[
        list[ToolCall] | None, Field(max_length=MAX_TOOL_CALLS), AfterValidator(_only_of_assistant)
    ] = None
    tool_call_id: Annotated[
        str | None,
        Field(max_length=256, validate_default=True),
        AfterValidator(_only_of_tool),
    ] = None
    refusal: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    reasoning_content: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    reasoning: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    prefix: Annotated[bool | None, AfterValidator(_only_in_answers)] = None

    @model_validator(mode="before")
    @classmethod
    def _history(cls, value: Any) -> Any:
        """The assistant's parts that are no text of the answer, as texts or as reasoning."""
        if isinstance(value, dict) and value.get("role") == "assistant":
            return with_plain_parts(value)
        return value

    @property
    def text(self) -> str:
        """The content as one string, without its images; without any, the refusal."""
        text = "".join(part.text for part in self.content if isinstance(part, TextPart))
        return text or self.refusal or ""

    @property
    def thoughts(self) -> str:
        """The reasoning before the text, which the server sent apart from it."""
        return self.reasoning_content or self.reasoning or ""

    @property
    def has_images(self) -> bool:
        """Whether there are images in it."""
        return any(isinstance(part, ImagePart) for part in self.content)


TemplateVariables = Annotated[
    dict[Annotated[str, StringConstraints(min_length=1, max_length=64)], Any], Field(max_length=64)
]
"""Variables for the chat template by name, as in vLLM and llama.cpp."""

ReasoningEffort = Annotated[str, StringConstraints(min_length=1, max_length=32)]


_ReasoningLimit = Annotated[int, Field(ge=NO_LIMIT, lt=2**31)]


class Reasoning(Body):
    """OpenRouter's form of `reasoning_effort` and `enable_thinking`, and that of the Responses API."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "summary": "reasoning is not summarised",
        "generate_summary": "as `summary`",
    }

    effort: ReasoningEffort | None = None
    enabled: bool | None = None
    exclude: bool | None = None
    max_tokens: _ReasoningLimit | None = None


Messages = Annotated[
    list[Message],
    BeforeValidator(with_tool_calls),
    Field(min_length=1, max_length=MAX_MESSAGES),
]


class ChatFormFields(Body):
    """How a conversation becomes a prompt, beside its messages (`chat_form`)."""

    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: TemplateVariables | None = None
    enable_thinking: bool | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning: Reasoning | None = None

    @property
    def reasoning_limit(self) -> int | None:
        """Tokens of reasoning after which the answer must begin; None without a limit."""
        limit = None if self.reasoning is None else self.reasoning.max_tokens
        return None if limit == NO_LIMIT else limit


class ChatCompletionRequest(ChatFormFields, SamplingFields):
    """Body of `POST /v1/chat/completions`."""

    messages: Messages
    max_completion_tokens: _TokenLimit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    reasoning_format: Literal["auto", "none", "deepseek", "deepseek-legacy"] | None = None
    separate_reasoning: bool | None = None
    include_reasoning: bool | None = None
    thinking_token_budget: _ReasoningLimit | None = None
    thinking_budget: _ReasoningLimit | None = None
    thinking_budget_tokens: _ReasoningLimit | None = None
    reasoning_control: bool | None = None
    prompt_cache_key: Annotated[str, StringConstraints(max_length=1024)] | None = None
    session_id: Annotated[str, StringConstraints(max_length=1024)] | None = None
    return_progress: bool | None = None
    retrieval: ChatRetrieval | None = None
    tools: Tools | None = None
    tool_choice: ToolChoiceField = None
    parallel_tool_calls: bool | None = None
    tool_decision: ToolDecision | None = None
    functions: Functions | None = None
    function_call: FunctionChoiceField = None
    allow_repeated_calls: bool | None = None
    tool_loop: ToolLoopBody | None = None

    @property
    def has_tools(self) -> bool:
        """Whether there are tools, of whatever type."""
        return bool(self.tools or self.functions)

    @property
    def offered_tools(self) -> list[Tool]:
        """The functions that the model may be offered."""
        return functions_of(self.tools) or [one.tool for one in self.functions or ()]

    @property
    def skipped_tools(self) -> list[str]:
        """The types of the tools that are not served, each once."""
        return list(dict.fromkeys(one.type for one in self.tools or () if one.function is None))

    @property
    def choice_of_tools(self) -> ToolChoice:
        """Which tools may be called; the old fields count only without `tools`."""
        given = self.tool_choice if self.tools or not self.functions else self.function_call
        choice: ToolChoice = given or ToolChoice()
        is_single = self.parallel_tool_calls is False or self.answers_function_call
        return replace(choice, parallel=not is_single)

    @property
    def answers_function_call(self) -> bool:
        """Whether a call is answered as `function_call`, as clients of the old fields expect it."""
        return bool(self.functions and not self.tools)

    @property
    def token_limit(self) -> int | None:
        """`max_completion_tokens`, else `max_tokens`."""
        newer = self.max_completion_tokens
        return self.max_tokens if newer is None else newer

    @property
    def session(self) -> str | None:
        """The name of the session that the request belongs to, under OpenAI's name of it or OpenRouter's."""
        return self.session_id or self.prompt_cache_key or None

    @property
    def reasoning_limit(self) -> int | None:
        """Tokens of reasoning after which the answer must begin; None without a limit.

        vLLM's, SGLang's, llama.cpp's and OpenRouter's names of it; the smallest one holds.
        """
        given = (
            self.thinking_token_budget,
            self.thinking_budget,
            self.thinking_budget_tokens,
            self.reasoning.max_tokens if self.reasoning is not None else None,
        )
        return min((one for one in given if one is not None and one != NO_LIMIT), default=None)

    @property
    def reasoning_stays_in_text(self) -> bool:
        """Whether reasoning is a part of the text, as llama.cpp and SGLang name it."""
        return self.reasoning_format == "none" or self.separate_reasoning is False

    @property
    def reasoning_is_shown(self) -> bool:
        """Whether the answer has its reasoning, under OpenRouter's and vLLM's names of the question."""
        excluded = self.reasoning is not None and bool(self.reasoning.exclude)
        return self.include_reasoning is not False and not excluded


class ChatControlRequest(Body):
    """Body of `POST /v1/chat/completions/control`."""

    model: str | None = None
    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    action: Literal["reasoning_end"]


Prompt = str | list[int]
"""One prompt: text, or token ids."""


def _parse_prompts(value: Any) -> list[Prompt]:
    """The four forms of `prompt` as a list of prompts."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("must be a string, token ids, or a non-empty list of either")
    if _is_token_ids(value):
        return [value]
    if all(isinstance(one, str) for one in value):
        return value
    if all(isinstance(one, list) and one and _is_token_ids(one) for one in value):
        return value
    raise ValueError(_wrong_item(value))


def _wrong_item(value: list[Any]) -> str:
    """What is wrong with a list of prompts, by the place of the first item that does not fit."""
    for index, one in enumerate(value):
        if one is None:
            return f"item [{index}] is null; a list has texts, token ids, or lists of token ids"
        if one == []:
            return f"item [{index}] is an empty list; a prompt needs a token"
        if isinstance(one, list) and not _is_token_ids(one):
            inner, wrong = next((i, item) for i, item in enumerate(one) if type(item) is not int)
            kind = "null" if wrong is None else f"a {type(wrong).__name__}"
            return f"item [{index}][{inner}] is {kind}; token ids are integers"
    return "must hold only strings, only token ids, or only lists of token ids"


def _is_token_ids(value: list[Any]) -> bool:
    return all(type(one) is int for one in value)  # a bool is an int to isinstance


class CompletionRequest(SamplingFields):
    """Body of `POST /v1/completions`."""

    prompt: Annotated[Any, BeforeValidator(_parse_prompts)]
    suffix: str | None = None
    max_tokens: _MaybeNoTokens | None = None
    max_completion_tokens: _MaybeNoTokens | None = None
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    best_of: Annotated[int, Field(ge=1, le=2**31)] | None = None
    echo: bool | None = None
    add_special_tokens: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    continued_tokens: Annotated[int, Field(ge=0, lt=2**31)] | None = None

    @property
    def token_limit(self) -> int:
        """`max_completion_tokens`, else `max_tokens`, else the API's default."""
        limits = (self.max_completion_tokens, self.max_tokens, COMPLETION_DEFAULT_TOKENS)
        return next(limit for limit in limits if limit is not None)

    @property
    def candidates(self) -> int:
        """Answers to generate for each prompt; the best `choices` of them are given."""
        return self.best_of or self.choices

    @property
    def prompts(self) -> list[Prompt]:
        """Every prompt, in order."""
        prompts: list[Prompt] = self.prompt
        return prompts


MAX_MODERATED_TEXTS = 256
MAX_EMBEDDED_TEXTS = 2048


def _only_texts(value: Any) -> Any:
    if isinstance(value, list) and any(not isinstance(one, str) for one in value):
        raise ValueError(
            "must be a text or a list of texts; token ids are not accepted, because they depend "
            "on the tokenizer"
        )
    return _one_or_many(value)


class EmbeddingRequest(Body):
    """Body of `POST /v1/embeddings`."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    input: Annotated[
        list[Annotated[str, StringConstraints(min_length=1)]],
        BeforeValidator(_only_texts),
        Field(min_length=1, max_length=MAX_EMBEDDED_TEXTS),
    ]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    truncate_prompt_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    keep_alive: KeepAlive | None = None


def _moderated(value: Any) -> Any:
    """The forms of a moderation's `input` as a list of texts."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("must be a text, a list of texts, or a list of text parts")
    kinds = {one.get("type") for one in value if isinstance(one, dict)} - {"text"}
    if kinds:
        raise ValueError("parts of other types than 'text' are not supported")
    if any(isinstance(one, dict) and one.keys() - {"type", "text"} for one in value):
        raise ValueError("a part of type 'text' has no members but `type` and `text`")
    return [one.get("text") if isinstance(one, dict) else one for one in value]


class ModerationRequest(Body):
    """Body of `POST /v1/moderations`."""

    input: Annotated[list[str], BeforeValidator(_moderated), Field(max_length=MAX_MODERATED_TEXTS)]
    model: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None

    @property
    def texts(self) -> list[str]:
        """Every text, in order."""
        return self.input


class ForkRequest(SamplingFields):
    """Body of `POST /fork`. Sampling fields that are left out are the parent's."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None  # type: ignore[assignment]
    parent: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    at: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    return_tokens_as_token_ids: bool | None = None

    @property
    def echo(self) -> bool:
        """Always False: the prompt is the parent's."""
        return False

    @property
    def prompts(self) -> list[Prompt]:
        """Always empty: the prompt is the parent's."""
        return []


class TokenizeRequest(ChatFormFields):
    """Body of `POST /tokenize`: a `prompt` (`content` in llama.cpp), or `messages` for the chat template."""

    model: str | None = None
    prompt: str | None = None
    content: str | None = None
    messages: Messages | None = None
    add_special_tokens: bool | None = None
    add_special: bool | None = None
    parse_special: bool | None = None
    tools: Tools | None = None
    return_token_strs: bool | None = None
    with_pieces: bool | None = None

    @property
    def add_bos(self) -> bool | None:
        """Whether BOS is wanted; None if the body does not say so."""
        return self.add_special if self.add_special_tokens is None else self.add_special_tokens


class DetokenizeRequest(Body):
    """Body of `POST /detokenize`."""

    model: str | None = None
    tokens: list[TokenId]
    skip_special_tokens: bool | None = None
    return_token_texts: bool | None = None


class PriceRequest(Body):
    """Body of `POST /price`."""

    model: str | None = None
    tokens: list[TokenId]


class ResidencyRequest(Body):
    """Body of `POST /residency`."""

    model: str | None = None
    tokens: list[TokenId]


class PinRequest(DefaultedBody):
    """Body of `POST /pin`; a pin with this id is replaced."""

    model: str | None = None
    tokens: list[TokenId]
    pin_id: Annotated[str, Field(min_length=1, max_length=64)] = Field(default_factory=new_pin_id)


class UnpinRequest(Body):
    """Body of `POST /unpin`."""

    pin_id: Annotated[str, Field(min_length=1, max_length=64)]


class SchedulingRequest(Body):
    """Body of `POST /scheduling`; omitted fields keep their values."""

    model: str | None = None
    policy: Policy | None = None
    batch_former: BatchFormerName | None = None
    step_target_ms: Annotated[float, Field(ge=MIN_STEP_TARGET_MS, le=MAX_STEP_TARGET_MS)] | None = (
        None
    )


class AgentRunRequest(DefaultedBody):
    """Body of `POST /v1/agents/runs`; `agents.service.run_request` checks the values."""

    kind: Literal["agent", "pipeline", "repair"]
    name: str
    paths: list[str] = Field(default_factory=list)
    task: str = ""
    document: str = ""
    use_model: bool = True
    mode: Literal["auto", "ask", "deny"] = "ask"
    tokens: int | None = None
    seconds: float | None = None
    conversation: str = ""


class ApprovalDecision(DefaultedBody):
    """Body of `POST /v1/agents/approvals/{id}`."""

    decision: Decision
    reason: str = Field(default="", max_length=500)


class ModelChangeRequest(DefaultedBody):
    """Body of `POST /v1/models/{id}/load` and `/unload`."""

    drain_seconds: Annotated[float, Field(ge=0, le=MAX_CHANGE_DRAIN_S)] = CHANGE_DRAIN_S
    keep_alive: KeepAlive | None = None


class ModelReloadRequest(Body):
    """Body of `POST /v1/models/{id}/reload`; without `drain_seconds` running requests may take any time."""

    drain_seconds: Annotated[float, Field(ge=0, le=MAX_CHANGE_DRAIN_S)] | None = None


class ApplyTemplateRequest(ChatFormFields):
    """Body of `POST /apply-template`."""

    model: str | None = None
    messages: Messages
    tools: Tools | None = None
