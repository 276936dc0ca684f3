"""The answer of `POST /v1/decisions`."""

from typing import Literal

from app.server.wire.answers.base import Answer


class ReadAnswer(Answer):
    """What every answer from probabilities has."""

    label_mass: float
    """How likely the model answers with a label of the question at all."""
    abstained: bool
    """Whether the two best answers are closer than `margin`."""


class RefusedAnswer(Answer):
    """The model wanted to say something else than a label of the question."""

    type: Literal["refusal"]
    name: str | None
    label_mass: float


class PredicateAnswer(ReadAnswer):
    """How likely a statement is true."""

    type: Literal["predicate"]
    name: str | None
    probability: float


class ChoiceProbability(Answer):
    """How likely a choice is."""

    value: str | bool
    probability: float


class ChoiceAnswer(ReadAnswer):
    """The likeliest choice."""

    type: Literal["choice"]
    name: str | None
    choice: str | bool
    confidence: float
    """Its probability among all tokens: that in `probabilities`, times `label_mass`."""
    probabilities: list[ChoiceProbability]
    """Of all choices, in their order; they sum to 1."""


class LevelProbability(Answer):
    """How likely a level is."""

    label: str
    value: int
    """Its place, from 0."""
    probability: float


class ScoreAnswer(ReadAnswer):
    """A place on a scale."""

    type: Literal["score"]
    name: str | None
    score: float
    """The mean of the levels' values under their probabilities."""
    confidence: float
    """The probability of the likeliest level among all tokens."""
    probabilities: list[LevelProbability]
    """Of all levels, in their order; they sum to 1."""


class DecisionInputDetails(Answer):
    """What became of the tokens that were read."""

    cached_tokens: int
    """Those of the input that were not computed."""
    cache_write_tokens: int
    """The others."""


class DecisionOutputDetails(Answer):
    """What the computed tokens are."""

    reasoning_tokens: Literal[0]


class DecisionUsage(Answer):
    """Token counts."""

    input_tokens: int
    """Of the input once, and of every question once."""
    input_tokens_details: DecisionInputDetails
    output_tokens: int
    """One for each row whose probabilities were read."""
    output_tokens_details: DecisionOutputDetails
    total_tokens: int


class DecisionsAnswer(Answer):
    """Answers in the order of the questions."""

    model: str
    answers: list[PredicateAnswer | ChoiceAnswer | ScoreAnswer | RefusedAnswer]
    usage: DecisionUsage


class AnswerById(Answer):
    """An answer in SGLang's form."""

    type: Literal["yes_no", "choice", "score"]
    probabilities: dict[str, float]
    """By option, or by the place of a level; they sum to 1."""
    label_mass: float
    choice: str | None = None
    """Of a choice."""
    score: float | None = None
    """Of a score."""


class PromptUsage(Answer):
    """Token counts of a prompt without an answer."""

    prompt_tokens: int
    completion_tokens: Literal[0]
    total_tokens: int


class DecisionsByIdAnswer(Answer):
    """Answers by the ids of the questions: to a request in SGLang's form."""

    object: Literal["decisions"]
    model: str
    prompt_format_version: int
    """0: the wording is none of SGLang's."""
    answers: dict[str, AnswerById]
    usage: PromptUsage
