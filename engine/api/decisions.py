"""Decisions: questions with fixed answers about a text, and how likely each answer is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.api.errors import InvalidRequest

MAX_QUESTIONS = 400
MIN_OPTIONS, MAX_OPTIONS = 2, 255
MARGIN = 0.1
"""Least difference of the two highest probabilities; below it an answer is marked as abstained."""
MIN_LABEL_MASS = 0.01
"""Least probability of all labels together; below it the model wanted to say something else."""

DecisionKind = Literal["predicate", "choice", "score"]
Outcome = Literal["decided", "abstained", "refused"]


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question about a text. `predicate`, `choice` and `score` make one.

    Attributes:
        kind: whether a statement is true, which option fits, or which level of a scale.
        text: the statement or question.
        options: the answers, 2 to 255 different ones; of a predicate yes and no, of a scale the lowest first.
        descriptions: what each option means, which the model reads behind it; empty if none has any.
        name: given back with the answer.
        lowest: value of the first level of a scale; that of each further one is 1 higher.
    """

    kind: DecisionKind
    text: str
    options: tuple[str, ...]
    descriptions: tuple[str | None, ...] = ()
    name: str | None = None
    lowest: int = 0

    def __post_init__(self) -> None:
        """Check the question.

        Raises:
            InvalidRequest: it says nothing, or has too few, too many or equal options.
        """
        if not self.text.strip():
            raise InvalidRequest("A question is empty.", param="questions")
        if not MIN_OPTIONS <= len(self.options) <= MAX_OPTIONS:
            raise InvalidRequest(
                f"A question has {MIN_OPTIONS} to {MAX_OPTIONS} options, not {len(self.options)}.",
                param="questions",
            )
        if len(set(self.shown())) < len(self.options):
            raise InvalidRequest("Two options of a question are the same.", param="questions")

    def rewritten(
        self, text: Callable[[str], str], option: Callable[[str], str]
    ) -> "DecisionQuestion":
        """The question with its text and its options as two functions return them."""
        return replace(
            self,
            text=text(self.text),
            options=tuple(map(option, self.options)),
            descriptions=tuple(one if one is None else option(one) for one in self.descriptions),
        )

    def described(self) -> list[tuple[str, str | None]]:
        """The options, each with what it means."""
        descriptions = self.descriptions or (None,) * len(self.options)
        return list(zip(self.options, descriptions, strict=True))

    def shown(self) -> list[str]:
        """The options as the model reads them."""
        return [
            f"{option}: {description}" if description else option
            for option, description in self.described()
        ]


YES, NO = "yes", "no"


def predicate(statement: str, *, name: str | None = None) -> DecisionQuestion:
    """Whether a statement is true.

    Raises:
        InvalidRequest: it is empty.
    """
    return DecisionQuestion("predicate", statement, (YES, NO), name=name)


def choice(
    question: str, options: Sequence[str] | Mapping[str, str | None], *, name: str | None = None
) -> DecisionQuestion:
    """Which option fits best.

    Args:
        question: what is asked.
        options: 2 to 255 different ones, or a mapping to what each of them means.
        name: given back with the answer.

    Raises:
        InvalidRequest: as `DecisionQuestion`.
    """
    return DecisionQuestion("choice", question, *_described(options), name=name)


def score(
    question: str,
    levels: range | Sequence[str] | Mapping[str, str | None],
    *,
    name: str | None = None,
) -> DecisionQuestion:
    """Which level of a scale fits best.

    Args:
        question: what is asked.
        levels: the lowest first: names, whose values are 0, 1 and so on, a mapping of names to what they
            mean, or a range of values.
        name: given back with the answer.

    Raises:
        InvalidRequest: as `DecisionQuestion`, or the step of the range is not 1.
    """
    if not isinstance(levels, range):
        return DecisionQuestion("score", question, *_described(levels), name=name)
    if levels.step != 1:
        raise InvalidRequest("The levels of a score differ by 1.", param="questions")
    if levels.stop - levels.start > MAX_OPTIONS:  # before so many texts are made
        raise InvalidRequest(
            f"A score has at most {MAX_OPTIONS} levels, not {levels.start} to {levels.stop - 1}.",
            param="questions",
        )
    return DecisionQuestion(
        "score", question, tuple(map(str, levels)), name=name, lowest=levels.start
    )


def _described(
    options: Sequence[str] | Mapping[str, str | None],
) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    if isinstance(options, str):
        raise InvalidRequest("Options are a list of texts, not one text.", param="questions")
    descriptions = tuple(options.values()) if isinstance(options, Mapping) else ()
    return tuple(options), descriptions


@dataclass(frozen=True, slots=True)
class DecisionRules:
    """How answers are read from the model's probabilities.

    Attributes:
        calibrate: subtract what the model says about an input without content, except of scores
            (`engine.decisions.calibration`).
        margin: least difference of the two highest probabilities of an answer that is not abstained.
        min_label_mass: least probability of the labels among all tokens, of an answer that is not refused.
    """

    calibrate: bool = False
    margin: float = MARGIN
    min_label_mass: float = MIN_LABEL_MASS

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidRequest: one is not between 0 and 1.
        """
        for name in ("margin", "min_label_mass"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InvalidRequest(
                    f"{name} must be between 0 and 1, not {value!r:.40}.", param=name
                )

    def read(
        self, question: DecisionQuestion, probabilities: Sequence[float], label_mass: float
    ) -> "DecisionAnswer":
        """The answer to a question whose options have these probabilities."""
        best, next_best = sorted(probabilities, reverse=True)[:2]
        outcome: Outcome = "decided"
        if label_mass < self.min_label_mass:
            outcome = "refused"
        elif best - next_best < self.margin:
            outcome = "abstained"
        return DecisionAnswer(question, tuple(probabilities), label_mass, outcome)


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """The answer to a question.

    Attributes:
        question: the question.
        probabilities: of its options, in their order; they sum to 1.
        label_mass: probability that the model's answer begins with a label at all, the mean over the orders
            of the options.
        outcome: `decided`; `abstained` if the two best options are too close; `refused` if `label_mass` is
            too small, so that `probabilities` say little.
    """

    question: DecisionQuestion
    probabilities: tuple[float, ...]
    label_mass: float
    outcome: Outcome = "decided"

    @property
    def best(self) -> int:
        """Index of the likeliest option, the first of equal ones."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)

    @property
    def label(self) -> str:
        """The likeliest option."""
        return self.question.options[self.best]

    @property
    def probability(self) -> float:
        """That the first option is right: of a predicate, that it is true."""
        return self.probabilities[0]

    @property
    def confidence(self) -> float:
        """The probability of the likeliest option among all tokens, labels or not."""
        return self.probabilities[self.best] * self.label_mass

    @property
    def score(self) -> float:
        """The mean of the levels' values under their probabilities."""
        lowest = self.question.lowest
        return lowest + sum(at * share for at, share in enumerate(self.probabilities))


@dataclass(frozen=True, slots=True)
class Decisions:
    """The answers to the questions of one call.

    Attributes:
        model: its name.
        answers: in the order of the questions.
        input_tokens: of the input, and of every question once.
        cached_tokens: of the input, those that were not computed.
        output_tokens: rows whose probabilities were read.
    """

    model: str
    answers: tuple[DecisionAnswer, ...] = field(repr=False)
    input_tokens: int
    cached_tokens: int
    output_tokens: int
