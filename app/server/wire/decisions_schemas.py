"""Pydantic schemas of the body of OpenAI's `POST /v1/decisions`.

The items of the input and the parts of instructions are read by `calls.decision_input`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    model_validator,
)

from app.server.wire.body import Body, IsOff, nothing, nothing_or
from app.server.wire.decisions_by_id import has_ids, without_ids
from app.server.wire.generation_fields import OF_THE_CALLER, WITHOUT_EFFECT
from app.server.wire.responses_schemas import ItemsOrText, ModelName
from engine.api.decisions import MAX_OPTIONS, MAX_QUESTIONS

MAX_PARTS = 256

Name = Annotated[str, StringConstraints(max_length=4096)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Share = Annotated[float, Field(ge=0, le=1)]


def _text_or_objects(value: Any) -> Any:
    is_list = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    if not (isinstance(value, str) or is_list):
        raise ValueError("it must be a text or a list of objects")
    return value


def _text_or_boolean(value: Any) -> Any:
    if not isinstance(value, (str, bool)):
        raise ValueError("it must be a text or a boolean")
    return value


# Errors of these unions would name a member of the union, too.
Input = Annotated[ItemsOrText, BeforeValidator(_text_or_objects)]
Instructions = Annotated[
    str | Annotated[list[dict[str, Any]], Field(max_length=MAX_PARTS)],
    BeforeValidator(_text_or_objects),
]
ChoiceValue = Annotated[str | bool, BeforeValidator(_text_or_boolean)]


class DecisionChoice(Body):
    """One of the answers to a question of the type `choice`."""

    value: ChoiceValue
    """The answer; a text and a boolean are never the same."""
    description: str | None = None
    """What it means."""


class DecisionLevel(Body):
    """One of the levels of a question of the type `score`."""

    label: Label
    """Its name."""
    description: str | None = None
    """What it means."""


class DecisionQuestion(Body):
    """A question about the input."""

    type: Literal["predicate", "choice", "score"]
    """Whether a statement is true, which choice fits, or which level of a scale."""
    instructions: Instructions
    """The statement or question: a text, or parts of the types `input_text` and `input_json`."""
    name: Name | None = None
    """Given back with the answer."""
    choices: Annotated[list[DecisionChoice], Field(max_length=MAX_OPTIONS)] | None = None
    """Of a `choice`: 2 to 255 different ones."""
    levels: Annotated[list[DecisionLevel], Field(max_length=MAX_OPTIONS)] | None = None
    """Of a `score`: 2 to 255 levels with different labels, the lowest first."""


class DecisionRequest(Body):
    """Body of `POST /v1/decisions`."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **OF_THE_CALLER,
        "prompt_cache_key": "one server has one cache",
        "prompt_cache_options": WITHOUT_EFFECT["prompt_cache_options"],
    }
    unsupported: ClassVar[Mapping[str, IsOff]] = {
        "joint": nothing_or(False),
        "images": nothing_or([]),
        "temperature": nothing_or(1, 1.0),
        "chat_template_kwargs": nothing_or({}, {"enable_thinking": False}),
        "return_prompt_token_ids": nothing_or(False),
        "prompt_format_version": nothing,
    }
    _has_ids: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A body in SGLang's form is read as one in OpenAI's."""
        by_id = has_ids(value)
        body = handler(without_ids(value) if by_id else value)
        body._has_ids = by_id
        return body

    @property
    def has_ids(self) -> bool:
        """Whether the answers are given by the ids of the questions, as SGLang's server does."""
        return self._has_ids

    model: ModelName | None = None
    """Name or alias of the model; the first one by default."""
    input: Input
    """What the questions are about: a text, or a list of messages, calls of tools and their outputs."""
    questions: Annotated[list[DecisionQuestion], Field(min_length=1, max_length=MAX_QUESTIONS)]
    """1 to 400 questions, each about the input alone."""
    calibrate: bool | None = None
    """Subtract what the model says about an input without content, except of scores."""
    margin: Share | None = None
    """Least difference of the two best probabilities, else an answer is `abstained`; 0.1 by default."""
    min_label_mass: Share | None = None
    """Least probability of all labels together, else an answer is a refusal; 0.01 by default."""
    cache_salt: Annotated[str | None, StringConstraints(min_length=1, max_length=1024)] = None
    """Rows share KV blocks only with requests of the same salt."""
