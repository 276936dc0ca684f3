"""Pydantic schemas of the request bodies: types and ranges of single fields.

Rules between fields and rules that need the model (the vocabulary, the context length) are checked in
`calls`; the engine validates requests again. Types are strict: a boolean is not an integer and "5" is
not a number. Undeclared fields are kept in `model_extra`, which `fields.undeclared_fields` checks.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
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
from app.server.wire.generation_fields import OF_THE_CALLER, UNSUPPORTED, WITHOUT_EFFECT
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


_Biases = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}$")],
        Annotated[float, Field(ge=-100, le=100)],
    ],
    Field(max_length=MAX_BIASES),
]


def _stop_strings(value: Any) -> Any:
    """One or many stop strings, each once; an empty one stops nothing and is left out."""
    strings = _one_or_many(value)
    if isinstance(strings, list) and all(isinstance(one, str) for one in strings):
        return [one for one in dict.fromkeys(strings) if one]
    return strings


StopStrings = Annotated[
    list[Annotated[str, StringConstraints(max_length=1024)]],
    BeforeValidator(_stop_strings, json_schema_input_type=str | list[str]),
    Field(max_length=MAX_STOP_STRINGS),
]


class StreamOptions(Body):
    """Options of a streamed answer."""

    # It pads chunks against a listener who measures them.
    unsupported: ClassVar[Mapping[str, IsOff]] = {"include_obfuscation": nothing_or(False)}

    include_usage: bool | None = None
    """End the stream with a chunk of `usage`."""
    continuous_usage_stats: bool | None = None
    """Put the usage so far into every chunk."""


class JsonSchemaFormat(Body):
    """The `json_schema` of a response format. It is enforced whatever the value of `strict`."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    """Name of the schema; it changes nothing."""
    description: str | None = None
    """What the schema is for; it changes nothing."""
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    """The JSON schema."""
    strict: bool | None = None
    """Enforced or not, the schema always holds."""


class ResponseFormat(Body):
    """OpenAI's field for JSON output; with `schema` as llama.cpp, Together and Fireworks have it."""

    type: Literal["text", "json_object", "json_schema"]
    """Free text, any JSON object, or JSON that matches a schema."""
    json_schema: JsonSchemaFormat | None = None
    """The schema, in OpenAI's form."""
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    """The schema, in the form of llama.cpp and others."""


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
    """A JSON schema."""
    regex: str | None = None
    """A regular expression."""
    choice: Choices | None = None
    """One of these texts."""
    grammar: str | None = None
    """A Lark grammar."""
    json_object: bool | None = None
    """Any JSON object."""


class SamplingFields(Body):
    """Fields that chat and plain completions share. None means the model's default, else the API's."""

    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT
    unsupported: ClassVar[Mapping[str, IsOff]] = UNSUPPORTED

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name or alias of the model."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after this request: seconds, or a duration such as `5m`."""
    prompt_cache_key: Annotated[str, StringConstraints(max_length=1024)] | None = None
    """Name of the session that the request belongs to; its KV is kept while it is expected back."""
    session_id: Annotated[str, StringConstraints(max_length=1024)] | None = None
    """As `prompt_cache_key`."""
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    """Divides the logits; 0 always takes the likeliest token."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sample from the likeliest tokens whose probabilities add up to this."""
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    """Sample from so many of the likeliest tokens; 0 and -1 are all."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Leave out tokens less likely than this share of the likeliest one."""
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Subtracted from the logits of tokens that the answer has."""
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Subtracted from a token's logit once for each time that the answer has it."""
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    """Divides the logits of tokens that prompt or answer have; 1 is none."""
    dry_multiplier: Annotated[float, Field(ge=0, le=100)] | None = None
    """Strength of DRY, which penalises the repetition of sequences; 0 is off."""
    dry_base: Annotated[float, Field(ge=1, le=100)] | None = None
    """Growth of DRY's penalty with the length of the repeated sequence."""
    dry_allowed_length: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Longest sequence that DRY lets be repeated."""
    dry_penalty_last_n: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    """Tokens in which DRY looks for sequences; -1 is all."""
    dry_sequence_breakers: (
        Annotated[
            list[Annotated[str, StringConstraints(min_length=1, max_length=MAX_BREAKER_CHARS)]],
            Field(max_length=MAX_BREAKERS),
        ]
        | None
    ) = None
    """Texts across which DRY follows no sequence."""
    logit_bias: (
        Annotated[
            dict[TokenId, Annotated[float, Field(ge=-100, le=100)]],
            BeforeValidator(_parse_bias, json_schema_input_type=_Biases),
            Field(max_length=MAX_BIASES),
        ]
        | None
    ) = None
    """Added to the logits of tokens, by token id."""
    seed: Annotated[int, Field(ge=MIN_SEED, lt=2**64)] | None = None
    """Makes the answer reproducible; -1 draws a new seed."""
    stop: StopStrings | None = None
    """A text, or several, before which the answer ends."""
    stop_token_ids: Annotated[list[TokenId], Field(max_length=MAX_STOP_TOKENS)] | None = None
    """Tokens that end the answer."""
    shown_control_ids: Annotated[list[TokenId], Field(max_length=MAX_SHOWN_TOKENS)] | None = None
    """Control tokens that are part of the answer's text."""
    ignore_eos: bool | None = None
    """Do not end the answer at the model's end token."""
    include_stop_str_in_output: bool | None = None
    """Show the stop string that ended the answer."""
    response_format: ResponseFormat | None = None
    """The form of the answer: free, a JSON object, or JSON that matches a schema."""
    structured_outputs: StructuredOutputs | None = None
    """The form of the answer in vLLM's field: a schema, an expression, a choice or a grammar."""
    json_schema: JsonSchema | None = None
    """A JSON schema that the answer must match."""
    guided_json: JsonSchema | None = None
    """As `json_schema` (vLLM's older name)."""
    guided_regex: str | None = None
    """A regular expression that the answer must match."""
    guided_choice: Choices | None = None
    """Texts of which the answer is one."""
    guided_grammar: str | None = None
    """A Lark grammar of the answer."""
    grammar: str | None = None
    """A grammar of the answer: llama.cpp's GBNF."""
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    """Lower goes first, with the scheduling policy `priority`."""
    service_class: ServiceClass | None = None
    """`interactive`, `agent` or `batch`: lower ones wait while a prompt of a higher one is pending."""
    deadline_ms: Annotated[float, Field(gt=0, le=MAX_DEADLINE_MS)] | None = None
    """Milliseconds within which the first token is wanted."""
    cache_salt: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CACHE_SALT)] | None
    ) = None
    """Requests with different salts share no cached blocks."""
    n: Annotated[int, Field(ge=1, le=2**31)] | None = None
    """Answers to each prompt."""
    max_tokens: _TokenLimit | None = None
    """Most tokens of the answer; -1 is no limit but the context."""
    stream: bool | None = None
    """Send the answer as server-sent events while it is generated."""
    stream_options: StreamOptions | None = None
    """Options of a stream."""
    prompt_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """Log-probabilities of the prompt's tokens, with so many alternatives each."""
    logprob_token_ids: Annotated[list[TokenId], Field(max_length=MAX_LOGPROB_TOKENS)] | None = None
    """Tokens whose log-probabilities are given at every position of the answer."""
    return_token_ids: bool | None = None
    """Add the token ids of prompt and answer."""
    return_timings: bool | None = None
    """Add times, the seed, cached tokens and accepted draft tokens."""
    request_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")] | None = None
    """The request's own id, for `/fork`, `/streams` and `/requests`."""
    resumable: bool | None = None
    """Keep the stream when its client is disconnected, for `/streams/{request_id}`."""

    @property
    def token_limit(self) -> int | None:
        """Limit of an answer in tokens, `NO_LIMIT` included; None if the request has none."""
        return self.max_tokens

    @property
    def session(self) -> str | None:
        """The name of the session that the request belongs to, under OpenAI's name of it or OpenRouter's."""
        return self.session_id or self.prompt_cache_key or None

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
    """Kind of the object."""
    text: str
    """The text."""


class ImageUrl(Body):
    """Where an image is: in the URL itself (`data:`), or the id of an uploaded file."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "format": "litellm's media type; types are found by contents"
    }

    url: Annotated[str, StringConstraints(min_length=1)]
    """A `data:` URL, or the id of an uploaded file."""
    detail: Annotated[Literal["auto", "low", "high"] | None, AfterValidator(_no_detail)] = None
    """Images are read in one way."""


class ImagePart(Body):
    """An image inside a message's content."""

    without_effect: ClassVar[Mapping[str, str]] = _CACHE_HINTS
    keeps_unknown: ClassVar[bool] = True

    type: Literal["image_url"]
    """Kind of the object."""
    image_url: ImageUrl
    """The image."""


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
    """Name of the function."""
    arguments: str | dict[str, Any]
    """An object, or its JSON text."""


class ToolCall(DefaultedBody):
    """A call in a message of the assistant."""

    keeps_unknown: ClassVar[bool] = True

    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Id of the call, which its result names."""
    type: Literal["function"] = "function"
    """Kind of the object."""
    function: FunctionCall
    """What is called."""


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
    """Who speaks."""
    content: Annotated[
        list[ContentPart],
        BeforeValidator(_as_parts, json_schema_input_type=str | list[ContentPart] | None),
        Field(default=None, validate_default=True),
    ]
    """A text or a list of parts; of the assistant or a tool it may be null."""
    tool_calls: Annotated[
        list[ToolCall] | None, Field(max_length=MAX_TOOL_CALLS), AfterValidator(_only_of_assistant)
    ] = None
    """Calls of the assistant."""
    tool_call_id: Annotated[
        str | None,
        Field(max_length=256, validate_default=True),
        AfterValidator(_only_of_tool),
    ] = None
    """Of a tool's result: the id of its call."""
    refusal: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    """Of the assistant: its text where there is no other."""
    reasoning_content: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    """Of the assistant: its reasoning."""
    reasoning: Annotated[str | None, AfterValidator(_only_in_answers)] = None
    """As `reasoning_content`."""
    prefix: Annotated[bool | None, AfterValidator(_only_in_answers)] = None
    """The answer continues this message."""

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
    """As `reasoning_effort`."""
    enabled: bool | None = None
    """As `enable_thinking`."""
    exclude: bool | None = None
    """Leave the reasoning out of the answer."""
    max_tokens: _ReasoningLimit | None = None
    """As `thinking_budget`."""


Messages = Annotated[
    list[Message],
    BeforeValidator(with_tool_calls),
    Field(min_length=1, max_length=MAX_MESSAGES),
]


class ChatFormFields(Body):
    """How a conversation becomes a prompt, beside its messages (`chat_form`)."""

    add_generation_prompt: bool | None = None
    """Begin the assistant's turn after the messages."""
    continue_final_message: bool | None = None
    """The answer continues the last message."""
    chat_template_kwargs: TemplateVariables | None = None
    """Variables of the chat template."""
    enable_thinking: bool | None = None
    """Whether the model reasons before it answers."""
    reasoning_effort: ReasoningEffort | None = None
    """How much the model reasons, in its template's words; `none` switches reasoning off."""
    reasoning: Reasoning | None = None
    """OpenRouter's form of the fields of reasoning."""

    @property
    def reasoning_limit(self) -> int | None:
        """Tokens of reasoning after which the answer must begin; None without a limit."""
        limit = None if self.reasoning is None else self.reasoning.max_tokens
        return None if limit == NO_LIMIT else limit


class ChatCompletionRequest(ChatFormFields, SamplingFields):
    """Body of `POST /v1/chat/completions`."""

    unsupported: ClassVar[Mapping[str, IsOff]] = UNSUPPORTED

    messages: Messages
    """The conversation."""
    max_completion_tokens: _TokenLimit | None = None
    """As `max_tokens`, over which it wins."""
    logprobs: bool | None = None
    """Add the log-probabilities of the answer's tokens."""
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """With so many alternatives for each token."""
    reasoning_format: Literal["auto", "none", "deepseek", "deepseek-legacy"] | None = None
    """`none` leaves reasoning in the text."""
    separate_reasoning: bool | None = None
    """False leaves reasoning in the text."""
    include_reasoning: bool | None = None
    """False leaves reasoning out of the answer."""
    thinking_token_budget: _ReasoningLimit | None = None
    """Most tokens of reasoning; -1 is no limit."""
    thinking_budget: _ReasoningLimit | None = None
    """As `thinking_token_budget`; the smallest holds."""
    thinking_budget_tokens: _ReasoningLimit | None = None
    """As `thinking_token_budget`; the smallest holds."""
    reasoning_control: bool | None = None
    """Let `/v1/chat/completions/control` end the reasoning."""
    return_progress: bool | None = None
    """In a stream: say how much of the prompt is read."""
    retrieval: ChatRetrieval | None = None
    """Search vector stores and let the model cite what is found."""
    tools: Tools | None = None
    """Functions that the model may call."""
    tool_choice: ToolChoiceField = None
    """`auto`, `none`, `required`, a function, or `allowed_tools`."""
    parallel_tool_calls: bool | None = None
    """False allows one call an answer."""
    tool_decision: ToolDecision | None = None
    """How `auto` decides whether a tool is called."""
    functions: Functions | None = None
    """As `tools`, in OpenAI's old form."""
    function_call: FunctionChoiceField = None
    """As `tool_choice`, in OpenAI's old form."""
    allow_repeated_calls: bool | None = None
    """Send a call again that equals one with a result."""
    tool_loop: ToolLoopBody | None = None
    """Tools that the server calls itself before it answers."""

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
    """Name or alias of the model; the first one without it."""
    id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """The `id` of the completion."""
    action: Literal["reasoning_end"]
    """`reasoning_end` ends the reasoning."""


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


_Item = TypeVar("_Item")
_Several = Annotated[list[_Item], Field(min_length=1)]


class CompletionRequest(SamplingFields):
    """Body of `POST /v1/completions`."""

    prompt: Annotated[
        Any,
        BeforeValidator(
            _parse_prompts,
            json_schema_input_type=str | _Several[str] | _Several[int] | _Several[_Several[int]],
        ),
    ]
    """A text, token ids, or a list of either."""
    suffix: str | None = None
    """The text after the gap that the answer fills."""
    max_tokens: _MaybeNoTokens | None = None
    """Most tokens of the answer; 0 computes only the prompt, -1 is no limit but the context."""
    max_completion_tokens: _MaybeNoTokens | None = None
    """As `max_tokens`, over which it wins."""
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """Log-probabilities of the tokens, with so many alternatives."""
    best_of: Annotated[int, Field(ge=1, le=2**31)] | None = None
    """Generate so many candidates and give the best `n`."""
    echo: bool | None = None
    """Begin the text with the prompt."""
    add_special_tokens: bool | None = None
    """Begin the prompt with the model's BOS token."""
    return_tokens_as_token_ids: bool | None = None
    """Name tokens in `logprobs` as `token_id:N`."""
    continued_tokens: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """So many last tokens of the prompt are the beginning of the answer."""

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


_Text = Annotated[str, StringConstraints(min_length=1)]
_TextOrTexts = _Text | Annotated[list[_Text], Field(min_length=1, max_length=MAX_EMBEDDED_TEXTS)]


class EmbeddingRequest(Body):
    """Body of `POST /v1/embeddings`."""

    without_effect: ClassVar[Mapping[str, str]] = OF_THE_CALLER

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name or alias of the embedding model."""
    input: Annotated[
        list[Annotated[str, StringConstraints(min_length=1)]],
        BeforeValidator(_only_texts, json_schema_input_type=_TextOrTexts),
        Field(min_length=1, max_length=MAX_EMBEDDED_TEXTS),
    ]
    """A text, or up to 2,048 of them; no token ids."""
    encoding_format: Literal["float", "base64"] | None = None
    """Numbers, or base64 of little-endian floats."""
    dimensions: Annotated[int, Field(ge=1)] | None = None
    """Numbers of a vector; the rest is cut off."""
    truncate_prompt_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Cut texts to so many tokens."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after this request: seconds, or a duration such as `5m`."""


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


class ModeratedPart(BaseModel):
    """A text as a part; it has no other members."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


_Moderated = (
    str | Annotated[list[str | ModeratedPart], Field(min_length=1, max_length=MAX_MODERATED_TEXTS)]
)


class ModerationRequest(Body):
    """Body of `POST /v1/moderations`."""

    without_effect: ClassVar[Mapping[str, str]] = OF_THE_CALLER

    input: Annotated[
        list[str],
        BeforeValidator(_moderated, json_schema_input_type=_Moderated),
        Field(max_length=MAX_MODERATED_TEXTS),
    ]
    """A text, up to 256 texts, or parts of type `text`."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    """`pravaha-guardrails`, or a name of OpenAI's."""

    @property
    def texts(self) -> list[str]:
        """Every text, in order."""
        return self.input


class ForkRequest(SamplingFields):
    """Body of `POST /fork`. Sampling fields that are left out are the parent's."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None  # type: ignore[assignment]
    """Name of the parent's model."""
    parent: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """The request's id, or that of a running chat completion."""
    at: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Tokens of prompt and answer to share; all without it."""
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """Log-probabilities of the tokens, with so many alternatives."""
    return_tokens_as_token_ids: bool | None = None
    """Name tokens in `logprobs` as `token_id:N`."""

    @property
    def echo(self) -> bool:
        """Always False: the prompt is the parent's."""
        return False

    @property
    def prompts(self) -> list[Prompt]:
        """Always empty: the prompt is the parent's."""
        return []


_OTHER_TEMPLATES: Mapping[str, IsOff] = {
    "chat_template": nothing,
    "documents": nothing_or([], {}, ""),
}
"""Members of vLLM's bodies that become prompts."""


class TokenizeRequest(ChatFormFields):
    """Body of `POST /tokenize`: a `prompt` (`content` in llama.cpp), or `messages` for the chat template."""

    unsupported: ClassVar[Mapping[str, IsOff]] = _OTHER_TEMPLATES

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    prompt: str | None = None
    """A text (vLLM's name)."""
    content: str | None = None
    """A text (llama.cpp's name)."""
    messages: Messages | None = None
    """A conversation."""
    add_special_tokens: bool | None = None
    """Begin a text with the BOS token; true for a `prompt`."""
    add_special: bool | None = None
    """As `add_special_tokens`; false for `content`."""
    parse_special: bool | None = None
    """Whether spellings of control tokens are control tokens."""
    tools: Tools | None = None
    """Tools that the conversation offers."""
    return_token_strs: bool | None = None
    """Add the tokens' texts."""
    with_pieces: bool | None = None
    """Each token as an object with its piece."""

    @property
    def add_bos(self) -> bool | None:
        """Whether BOS is wanted; None if the body does not say so."""
        return self.add_special if self.add_special_tokens is None else self.add_special_tokens


class DetokenizeRequest(Body):
    """Body of `POST /detokenize`."""

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    tokens: list[TokenId]
    """Token ids."""
    skip_special_tokens: bool | None = None
    """Leave control tokens out."""
    return_token_texts: bool | None = None
    """Add the text that each token adds."""


class PriceRequest(Body):
    """Body of `POST /price`."""

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    tokens: list[TokenId]
    """The prompt's token ids."""


class ResidencyRequest(Body):
    """Body of `POST /residency`."""

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    tokens: list[TokenId]
    """The prefix's token ids."""


class PinRequest(DefaultedBody):
    """Body of `POST /pin`; a pin with this id is replaced."""

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    tokens: list[TokenId]
    """The prefix's token ids."""
    pin_id: Annotated[str, Field(min_length=1, max_length=64)] = Field(default_factory=new_pin_id)
    """Name of the pin; a new one without it."""


class UnpinRequest(Body):
    """Body of `POST /unpin`."""

    pin_id: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the pin."""


class SchedulingRequest(Body):
    """Body of `POST /scheduling`; omitted fields keep their values."""

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    policy: Policy | None = None
    """Order of requests."""
    batch_former: BatchFormerName | None = None
    """How many tokens a step has: fixed, or as fit a time."""
    step_target_ms: Annotated[float, Field(ge=MIN_STEP_TARGET_MS, le=MAX_STEP_TARGET_MS)] | None = (
        None
    )
    """The time of a step, for the timed batch former."""


class AgentRunRequest(DefaultedBody):
    """Body of `POST /v1/agents/runs`; `agents.service.run_request` checks the values."""

    kind: Literal["agent", "pipeline", "repair"]
    """What is run."""
    name: str
    """Name of the agent or pipeline."""
    paths: list[str] = Field(default_factory=list)
    """Files and folders that it works on."""
    task: str = ""
    """What it is to do."""
    document: str = ""
    """A text that it works on."""
    use_model: bool = True
    """False runs only what needs no model."""
    mode: Literal["auto", "ask", "deny"] = "ask"
    """Of calls with side effects: run them, ask for approval, or deny them."""
    tokens: int | None = None
    """Most tokens of the run."""
    seconds: float | None = None
    """Most seconds of the run."""
    conversation: str = ""
    """The conversation that the run belongs to."""


class ApprovalDecision(DefaultedBody):
    """Body of `POST /v1/agents/approvals/{id}`."""

    decision: Decision
    """The answer."""
    reason: str = Field(default="", max_length=500)
    """Why; the agent reads it."""


class ModelChangeRequest(DefaultedBody):
    """Body of `POST /v1/models/{id}/load` and `/unload`."""

    drain_seconds: Annotated[float, Field(ge=0, le=MAX_CHANGE_DRAIN_S)] = CHANGE_DRAIN_S
    """Time for running requests to finish."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after its last request."""


class ModelReloadRequest(Body):
    """Body of `POST /v1/models/{id}/reload`; without `drain_seconds` running requests may take any time."""

    drain_seconds: Annotated[float, Field(ge=0, le=MAX_CHANGE_DRAIN_S)] | None = None
    """Time for running requests to finish; any without it."""


class ApplyTemplateRequest(ChatFormFields):
    """Body of `POST /apply-template`."""

    unsupported: ClassVar[Mapping[str, IsOff]] = _OTHER_TEMPLATES

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    messages: Messages
    """The conversation."""
    tools: Tools | None = None
    """Tools that it offers."""
