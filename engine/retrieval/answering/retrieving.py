"""What documents have about a question: reasons not to answer it, else the searches that follow the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.retrieval.answering.evidence import (
    MIN_EVIDENCE,
    Declined,
    Mentions,
    best_evidence,
    evidence,
    unknown_names,
)
from engine.retrieval.answering.hops import MAX_ROUNDS, Hops, followed
from engine.retrieval.answering.support import Embed
from engine.retrieval.api.passage import Passage


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found.

    Attributes:
        hops: the searches; None if the documents do not answer the question.
        declined: why they do not; None if they do.
    """

    hops: Hops | None
    declined: Declined | None = None


def retrieve(
    query: str,
    passages: Sequence[Passage],
    search: Callable[[str], Sequence[Passage]],
    mentions: Mentions,
    embed: Embed,
    *,
    asked: str,
    min_evidence: float = MIN_EVIDENCE,
    rounds: int = MAX_ROUNDS,
    best: Callable[[Sequence[Passage]], Sequence[Passage]] = lambda found: found,
) -> Retrieved:
    """Decide whether documents answer a question, and search on from what was found first.

    Args:
        query: what was searched for.
        passages: what the first search found, best first.
        search: the searches that follow.
        mentions: looks a word up in the documents.
        embed: computes vectors of texts.
        asked: the question as it was asked, whose names the documents must have; empty if it is none.
        min_evidence: what is asked of the evidence (`best_evidence`); -1 answers from any passage,
            whatever names the question has.
        rounds: searches one behind the other, the first included.
        best: chooses those of the first search that are read; called if there is an answer.
    """
    always = min_evidence <= -1
    unknown = () if always else unknown_names(asked, passages, mentions)
    if unknown:
        return Retrieved(None, Declined(evidence(passages), min_evidence, unknown))
    found = 1.0 if always else best_evidence(query, passages, embed, min_evidence=min_evidence)
    if not passages or found < min_evidence:
        return Retrieved(None, Declined(found if passages else -1.0, min_evidence))
    return Retrieved(followed(query, best(passages), search, rounds=rounds))
