"""`Decider`: one-token decisions from label probabilities. No text is generated or parsed.

Labels, orders and calibration are the engine's (`engine.decisions`). Only the prompt is the agents'
own: a question stands in the user's message behind the shared part of all agents, as it did when it was
measured whether it helps (`agents.steps.measures.question_measure`). The scores of an empty subject and
document are computed once per question.
"""

from collections.abc import Callable, Iterable, Sequence

from agents.api.budget import BudgetMeter
from agents.api.errors import ModelFailure
from agents.api.usage import Usage
from agents.model.layout import SharedLayout, SharedPrompt
from agents.model.question import Decision, Question
from agents.model.session import Generation, ModelSession, usage_of
from engine.api.request import Request, SamplingParams
from engine.decisions import labels as decision_labels
from engine.decisions.calibration import Calibration
from engine.decisions.labels import LETTERS, Letters, NoLabels
from engine.decisions.probabilities import Scores, margin_of, option_probabilities, orders

_EMPTY = "N/A"


class Decider:
    """Takes decisions with one session."""

    def __init__(self, session: ModelSession, layout: SharedLayout) -> None:
        self._session = session
        self._layout = layout
        self._known: tuple[str, Letters] | None = None
        self._calibration = Calibration()

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
        model = self._session.identity()
        known = {q: self._calibration.get(model, q) for q in dict.fromkeys(q for q, _ in pairs)}
        unknown = [question for question, scores in known.items() if scores is None]
        empty = self._layout.shared(document=_EMPTY)
        found, usage = await self._scores(empty, [(q, _EMPTY) for q in unknown], meter)
        for question, scores in zip(unknown, found, strict=True):
            known[question] = scores
            self._calibration.put(model, question, scores)
        found, used = await self._scores(shared, pairs, meter)
        decisions = [
            combine(question, both, known[question])
            for (question, _), both in zip(pairs, found, strict=True)
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
        return self._known[1]


def letters(tokenize: Callable[[str], list[int]], count: int = LETTERS) -> Letters:
    """The letters of a tokenizer, as `engine.decisions.labels.letters`.

    Raises:
        ModelFailure: it does not write letters as single, different tokens.
    """
    try:
        return decision_labels.letters(tokenize, count)
    except NoLabels as error:
        raise ModelFailure(str(error)) from error


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
    label = max(probabilities, key=probabilities.__getitem__)
    abstained = margin_of(shares) < question.margin
    return Decision(question.name, label, probabilities, abstained=abstained)
