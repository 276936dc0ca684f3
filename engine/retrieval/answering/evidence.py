"""Whether the found passages can answer a question at all.

The evidence is the highest cosine between the question and a found passage. Models, above all small ones,
answer from whatever they are given, so too little evidence ends in "not in the documents" without asking one.

A passage about several subjects is close to a question about none of them, so where the passages are not
close enough, their sentences are compared.

A question about something whose name is nowhere finds pages about other things of its kind, which are as
close as the right one would be. Its name is evidence against an answer (`unknown_names`).
"""

from collections.abc import Callable, Sequence

from engine.retrieval.answering.names import asked_names, folded_words
from engine.retrieval.answering.numbered_passage import labels_of
from engine.retrieval.answering.sentences import sentences
from engine.retrieval.answering.support import Embed
from engine.retrieval.answering.terms import folded
from engine.retrieval.api.passage import Passage

MIN_EVIDENCE = 0.44
"""Below it the documents are taken not to answer (docs/retrieval.md has the error rates). The scale is that
of all-MiniLM-L6-v2; questions in scripts that it was not trained on score high whatever is asked."""

MIN_SENTENCE_EVIDENCE = 0.5
"""The same for the cosine of a single sentence: one that merely resembles a question scores higher than a
passage that does."""

MAX_ASKED_NAMES = 8
"""Names that are looked up for a question."""

Mentions = Callable[[str], bool]
"""Whether a document has one of some words."""

_MIN_CHARACTERS = 12
_MAX_SENTENCES = 64


def evidence(passages: Sequence[Passage]) -> float:
    """The highest cosine to the question, -1 without passages; 1 if none was computed (lexical search)."""
    cosines = [passage.dense for passage in passages if passage.dense is not None]
    if cosines:
        return max(cosines)
    return 1.0 if passages else -1.0


def is_answerable(
    query: str,
    passages: Sequence[Passage],
    embed: Embed,
    *,
    min_evidence: float = MIN_EVIDENCE,
) -> bool:
    """Whether the passages, or one of their sentences, are close enough to what was searched for.

    Args:
        query: what was searched for.
        passages: what was found, best first.
        embed: computes vectors of texts; used only if no passage is close enough.
        min_evidence: the least cosine of a passage.
    """
    if evidence(passages) >= min_evidence:
        return bool(passages)
    found = [
        one
        for passage in passages
        for one in sentences(passage.text)
        if len(one) >= _MIN_CHARACTERS
    ][:_MAX_SENTENCES]
    if not found:
        return False
    vectors = embed([query, *found])
    return float((vectors[1:] @ vectors[0]).max()) >= max(MIN_SENTENCE_EVIDENCE, min_evidence)


def unknown_names(
    question: str, passages: Sequence[Passage], mentions: Mentions
) -> tuple[str, ...]:
    """The names of a question that no document has; one of them is reason not to answer it.

    Args:
        question: as it was asked. Names are told by capitals (`names`): a name in small letters is not seen.
        passages: what was found. What they are called counts: file names are in no index.
        mentions: looks a word up in the documents.
    """
    called = folded_words(" ".join(labels_of(one) for one in passages))
    return tuple(
        name
        for name in asked_names(question)[:MAX_ASKED_NAMES]
        if folded(name) not in called and not mentions(f"{name} {folded(name)}")
    )
