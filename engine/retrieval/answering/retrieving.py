"""What documents have about a question: reasons not to answer it, else the searches that follow the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.retrieval.answering.evidence import (
    MIN_EVIDENCE,
    Mentions,
    is_answerable,
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
        unknown: the names of the question that no document has, which is a reason for that.
    """

    hops: Hops | None
    unknown: tuple[str, ...] = ()


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
        min_evidence: see `is_answerable`.
        rounds: searches one behind the other, the first included.
        best: chooses those of the first search that are read; called if there is an answer.
    """
    unknown = unknown_names(asked, passages, mentions)
    if unknown or not is_answerable(query, passages, embed, min_evidence=min_evidence):
        return Retrieved(None, unknown)
    return Retrieved(followed(query, best(passages), search, rounds=rounds))
