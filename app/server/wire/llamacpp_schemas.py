"""Pydantic schemas of llama.cpp's own endpoints: `POST /completion` and `POST /infill`.

Its clients send every parameter that they know; those without a meaning here are ignored and listed in the
response header, where they would have changed the answer.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from app.server.wire.body import DefaultedBody


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _bias(value: Any) -> Any:
    """llama.cpp's pairs of token id and bias (`false` forbids the token) as OpenAI's object."""
    if not isinstance(value, list):
        return value
    biases: dict[str, Any] = {}
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int:
            raise ValueError("each item must be a pair of a token id and a number, or false")
        biases[str(pair[0])] = -100.0 if pair[1] is False else pair[1]
    return biases


class LlamaCppSampling(DefaultedBody):
    """What both endpoints take."""

    keeps_unknown: ClassVar[bool] = True
    without_effect: ClassVar[Mapping[str, str]] = {
        "cache_prompt": "every prefix is cached until its blocks are needed",
        "id_slot": "there are no slots: any request reuses any prefix",
        "n_keep": "no context is shifted",
        "n_discard": "no context is shifted",
        "repeat_last_n": "`repeat_penalty` looks at the whole prompt and answer",
        "samplers": "one order of samplers is built in",
        "min_keep": "one token always stays",
        "t_max_prompt_ms": "prompts are read as fast as possible",
        "t_max_predict_ms": "`n_predict` limits an answer",
        "response_fields": "all fields are sent",
        "timings_per_token": "the last chunk has the timings",
        "return_progress": "a comment is sent while a prompt is read",
        "mirostat_tau": "a parameter of `mirostat`",
        "mirostat_eta": "a parameter of `mirostat`",
        "n_cmpl": "one answer is given",
    }

    model: str | None = None
    """Name or alias of the model; the first one without it."""
    stream: bool | None = None
    """Send pieces while the answer is generated."""
    n_predict: int | None = None
    """Most tokens of the answer; negative ones are no limit."""
    max_tokens: int | None = None
    """As `n_predict`."""
    temperature: float | None = None
    """As in chats."""
    top_k: int | None = None
    """As in chats."""
    top_p: float | None = None
    """As in chats."""
    min_p: float | None = None
    """As in chats."""
    repeat_penalty: float | None = None
    """As `repetition_penalty` of a chat."""
    presence_penalty: float | None = None
    """As in chats."""
    frequency_penalty: float | None = None
    """As in chats."""
    dry_multiplier: float | None = None
    """As in chats."""
    dry_base: float | None = None
    """As in chats."""
    dry_allowed_length: int | None = None
    """As in chats."""
    dry_penalty_last_n: int | None = None
    """As in chats."""
    dry_sequence_breakers: list[str] | None = None
    """As in chats."""
    seed: int | None = None
    """As in chats."""
    stop: Annotated[
        list[str] | None,
        BeforeValidator(_one_or_many, json_schema_input_type=str | list[str] | None),
    ] = None
    """As in chats."""
    ignore_eos: bool | None = None
    """As in chats."""
    logit_bias: Annotated[
        dict[str, float] | None,
        BeforeValidator(_bias, json_schema_input_type=dict[str, float] | list[list[Any]] | None),
    ] = None
    """Pairs of a token id and a bias (`false` forbids the token), or an object."""
    grammar: str | None = None
    """A grammar of the answer: GBNF."""
    json_schema: dict[str, Any] | None = None
    """A JSON schema that the answer must match."""
    n_probs: int | None = None
    """Log-probabilities of the tokens, with so many alternatives."""
    return_tokens: bool | None = None
    """Add the token ids."""


class LlamaCppCompletionRequest(LlamaCppSampling):
    """Body of `POST /completion`: a text, token ids, or pieces of both in a row."""

    prompt: str | list[int | str]
    """A text, token ids, or pieces of both in a row."""


class ExtraFile(DefaultedBody):
    """Another file that the model may know when it fills a gap."""

    keeps_unknown: ClassVar[bool] = True

    filename: str = ""
    """Its name."""
    text: str
    """Its text."""


class LlamaCppInfillRequest(LlamaCppSampling):
    """Body of `POST /infill`: the text before and after a gap, and what of the middle is written."""

    input_prefix: str = ""
    """The text before the gap."""
    input_suffix: str = ""
    """The text after it."""
    input_extra: Annotated[list[ExtraFile], Field(default_factory=list, max_length=256)]
    """Other files, for models with a token for them."""
    prompt: str = ""
    """What of the middle is written already."""
