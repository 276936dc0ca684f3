"""`Answer`: what was found and said about a question."""

from dataclasses import dataclass
from typing import Literal

from engine.api.request import FinishReason
from engine.retrieval.answering.evidence import Declined
from engine.retrieval.answering.hops import Round
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.verification import (
    CheckedSentence,
    Citation,
    DroppedCitation,
)
from engine.retrieval.api.passage import Passage

Outcome = Literal["answered", "unsupported", "not_found"]
"""`answered`: a passage supports at least one sentence. `unsupported`: none does; the closest passages are
quoted behind the model's text. `not_found`: the model is not asked, because the passages are too far from the
question, or no document has a name that the question has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question.

    Attributes:
        question: as it was asked.
        query: what was searched for; differs if the question refers to earlier ones.
        text: the answer as it was streamed, citations included.
        outcome: how far the documents support it.
        citations: the sources that it cites, by number; every one exists.
        dropped: citations of the model that were taken out.
        sentences: the model's sentences, each with whether a source supports it.
        sources: what the model read, in the order of the prompt.
        passages: what was found, best first.
        declined: why the documents are taken not to answer; None if the model was asked.
        rounds: the searches; the first one, and those that added a passage (`hops`).
        evidence: the highest cosine between the question and a passage.
        finish_reason: why the model ended; None if it was not asked.
        prompt_tokens: length of the prompt.
        cached_tokens: how many of them were in the prefix cache.
        completion_tokens: generated tokens.
        search_s: seconds of the search.
        first_token_s: seconds from the question to the model's first token; None without one.
    """

    question: str
    query: str
    text: str
    outcome: Outcome
    citations: tuple[Citation, ...] = ()
    dropped: tuple[DroppedCitation, ...] = ()
    sentences: tuple[CheckedSentence, ...] = ()
    sources: tuple[NumberedPassage, ...] = ()
    passages: tuple[Passage, ...] = ()
    declined: Declined | None = None
    rounds: tuple[Round, ...] = ()
    evidence: float = 0.0
    finish_reason: FinishReason | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    search_s: float = 0.0
    first_token_s: float | None = None
