"""`Decider`: one-token decisions from label probabilities. No text is generated or parsed.

Each decision is asked in two label orders, each one forward pass behind the shared prefix. The log-
probabilities of the letters are read and averaged over the orders, because small models prefer certain
letters and positions. Those of the same question with an empty subject and document are subtracted
(contextual calibration, Zhao et al. 2021, arXiv:2102.09690); they are computed once per question.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agents.api.budget import BudgetMeter
from agents.api.errors import ModelFailure
from agents.api.usage import Usage
from agents.model.layout import SharedLayout, SharedPrompt
from agents.model.question import MAX_OPTIONS, Decision, Question
from agents.model.session import Generation, ModelSession, usage_of
from engine.api.request import Request, SamplingParams

PREFIX = "Answer:"
"""What an answer begins with, where the tokenizer keeps it apart from the letter."""
_EMPTY = "N/A"
Scores = tuple[list[float], list[float]]
"""Per label order, one value per option."""


@dataclass(frozen=True, slots=True)
class Letters:
    """How a tokenizer writes the letters at the start of an answer.

    Attributes:
        prefix: tokens of the answer before the letter.
        ids: one token per letter, A first.
    """

    prefix: tuple[int, ...]
    ids: tuple[int, ...]


class Decider:
    """Takes decisions with one session."""

    def __init__(self, session: ModelSession, layout: SharedLayout) -> None:
        self._session = session
        self._layout = layout
        self._known: tuple[str, Letters] | None = None
        self._empty_scores: dict[Question, Scores] = {}

    async def decide(
        self,
        shared: SharedPrompt,
        asked: Iterable[tuple[Question, str]],
        meter: BudgetMeter | None = None,
    ) -> tuple[list[Decision], Usage]:
        """Decide several questions about one document in one batch.

        Args:
            shared: the shared prompt with the document.
            asked: each question with its subject.
            meter: budget of the run that asks.

        Returns:
            The decisions in order, and the tokens of all requests.

        Raises:
            BudgetExhausted: the budget does not allow the batch.
            ModelFailure: the engine refused a request or stopped.
        """
        pairs = list(asked)
        self._letters()  # another model's scores of the empty prompt are dropped
        unknown = [q for q in dict.fromkeys(q for q, _ in pairs) if q not in self._empty_scores]
        empty = self._layout.shared(document=_EMPTY)
        scores, usage = await self._scores(empty, [(q, _EMPTY) for q in unknown], meter)
        self._empty_scores |= dict(zip(unknown, scores, strict=True))
        scores, used = await self._scores(shared, pairs, meter)
        decisions = [
            combine(question, both, self._empty_scores[question])
            for (question, _), both in zip(pairs, scores, strict=True)
        ]
        return decisions, usage.plus(used)

    def requests(
        self, shared: SharedPrompt, question: Question, subject: str
    ) -> tuple[Request, Request]:
        """The requests of one decision: the options in their order, and reversed."""
        labels = self._letters()
        count = len(question.options)
        sampling = SamplingParams(
            temperature=0.0, max_tokens=1, logprob_token_ids=labels.ids[:count]
        )

        def request(order: tuple[int, ...]) -> Request:
            tail = self._layout.tail(shared, question.about(subject, order))
            return Request((*shared.token_ids, *tail, *labels.prefix), sampling)

        forward, backward = orders(count)
        return request(forward), request(backward)

    async def _scores(
        self,
        shared: SharedPrompt,
        asked: Sequence[tuple[Question, str]],
        meter: BudgetMeter | None,
    ) -> tuple[list[Scores], Usage]:
        """Log-probabilities of each question's options in both orders."""
        requests = [one for pair in asked for one in self.requests(shared, *pair)]
        generations = await self._session.generate_all(
            requests, meter, shared_tokens=len(shared.token_ids)
        )
        both = zip(generations[::2], generations[1::2], strict=True)
        scores = [
            option_scores(len(q.options), *two) for (q, _), two in zip(asked, both, strict=True)
        ]
        return scores, usage_of(generations)

    def _letters(self) -> Letters:
        fingerprint = self._session.client.tokenizer_fingerprint()
        if self._known is None or self._known[0] != fingerprint:
            self._known = fingerprint, letters(self._session.client.tokenize)
            self._empty_scores.clear()
        return self._known[1]


def orders(count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The two orders in which options are shown: as given, and reversed."""
    return tuple(range(count)), tuple(reversed(range(count)))


def letter_texts(count: int = MAX_OPTIONS) -> tuple[tuple[str, list[str]], ...]:
    """The two ways to write an answer: the prefix, and the texts with each letter behind it."""
    names = [chr(65 + at) for at in range(count)]
    return (PREFIX, [f"{PREFIX} {name}" for name in names]), ("", names)


def letters(tokenize: Callable[[str], list[int]], count: int = MAX_OPTIONS) -> Letters:
    """The letters behind a prefix that keeps its own tokens, else at the start of the answer.

    Args:
        tokenize: token ids of the texts of `letter_texts`.
        count: how many letters.

    Raises:
        ModelFailure: the tokenizer does not write letters as single, different tokens.
    """
    for prefix, texts in letter_texts(count):
        begun = tokenize(prefix) if prefix else []
        ids = [tokenize(text) for text in texts]
        if all(len(one) == len(begun) + 1 and one[:-1] == begun for one in ids):
            last = tuple(one[-1] for one in ids)
            if len(set(last)) == len(last):
                return Letters(tuple(begun), last)
    raise ModelFailure("The model's tokenizer has no single tokens for letters.")


def option_scores(count: int, forward: Generation, backward: Generation) -> Scores:
    """[2][count]: log-probabilities by option; those of the reversed order are put back in order."""
    return (
        list(forward.token_id_logprobs[0][:count]),
        list(reversed(backward.token_id_logprobs[0][:count])),
    )


def combine(question: Question, scores: Scores, empty: Scores | None = None) -> Decision:
    """The decision from both orders' scores, less those of the empty input where there are any."""
    shares = option_probabilities(scores, empty)
    probabilities = dict(zip(question.options, shares, strict=True))
    ranked = sorted(probabilities, key=lambda option: -probabilities[option])
    margin = probabilities[ranked[0]] - probabilities[ranked[1]]
    return Decision(question.name, ranked[0], probabilities, abstained=margin < question.margin)


def option_probabilities(scores: Scores, empty: Scores | None = None) -> list[float]:
    """The probability of each option; arguments as of `combine`."""
    adjusted = _mean(scores)
    if empty is not None:
        adjusted = [one - base for one, base in zip(adjusted, _mean(empty), strict=True)]
    top = max(adjusted)
    weights = [math.exp(one - top) for one in adjusted]
    total = sum(weights)
    return [weight / total for weight in weights]


def _mean(scores: Scores) -> list[float]:
    return [(one + other) / 2 for one, other in zip(*scores, strict=True)]
