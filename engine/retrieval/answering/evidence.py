"""Whether the found passages can answer a question at all.

The evidence is how close a found passage is to the question, or the best of its parts: a sentence, or a row
of a table with its header. Models, above all small ones, answer from whatever they are given, so too little
evidence ends in "not in the documents" without asking one.

A passage about several subjects is close to a question about none of them, and a table is close to no
question. Where the passages are not close enough, their parts are compared: by the cosine, and by the share
of the question's words that they have. Less is asked where one passage stands out among those found.

A question about something whose name is nowhere finds pages about other things of its kind, which are as
close as the right one would be. Its name is evidence against an answer (`unknown_names`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.retrieval.answering.names import asked_names, folded_words
from engine.retrieval.answering.numbered_passage import NumberedPassage, labels_of
from engine.retrieval.answering.sentences import sentences
from engine.retrieval.answering.support import Embed
from engine.retrieval.answering.table_rows import tables_of
from engine.retrieval.answering.terms import content_terms, folded
from engine.retrieval.api.passage import Passage
from engine.retrieval.store.word_forms import folded_form, joined_words

MIN_EVIDENCE = 0.44
"""Below it the documents are taken not to answer (docs/retrieval.md has the error rates). The scale is that
of all-MiniLM-L6-v2; questions in scripts that it was not trained on score high whatever is asked."""

WORDS_WEIGHT = 0.2
"""What a part gains by having all words of the question."""

PART_MARGIN = 0.16
"""How much more is asked of a part than of a passage: parts that merely resemble a question score higher."""

LEADING_MARGIN = 0.04
"""The same where the first passage leads: its score is `LEAD` above that of the next one."""

LEAD = 0.07

MAX_ASKED_NAMES = 8
"""Names that are looked up for a question."""

Mentions = Callable[[str], bool]
"""Whether a document has one of some words."""

_MIN_CHARACTERS = 12
_MAX_PARTS = 64
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Declined:
    """Why a question is not answered.

    Attributes:
        evidence: that of the passages (`best_evidence`); -1 if nothing was found.
        least: what is asked of it.
        unknown: the names of the question that no document has; if there is one, evidence does not count.
    """

    evidence: float
    least: float
    unknown: tuple[str, ...] = ()

    @property
    def rule(self) -> Literal["names", "evidence", "nothing"]:
        """The rule that declined: an unknown name, too little evidence, or no passage at all."""
        if self.unknown:
            return "names"
        return "nothing" if self.evidence <= -1 else "evidence"

    @property
    def sentence(self) -> str:
        """The rule that declined, in one sentence."""
        if self.unknown:
            return f"No document has the name {' or '.join(self.unknown)}."
        if self.evidence <= -1:
            return "There is no passage to answer from."
        return (
            f"No passage is close enough to the question: the closest has {self.evidence:.2f}, and "
            f"{self.least:.2f} is asked for."
        )


def evidence(passages: Sequence[Passage]) -> float:
    """The highest cosine to the question, -1 without passages; 1 if none was computed (lexical search)."""
    cosines = [passage.dense for passage in passages if passage.dense is not None]
    if cosines:
        return max(cosines)
    return 1.0 if passages else -1.0


def best_evidence(
    query: str,
    passages: Sequence[Passage],
    embed: Embed,
    *,
    min_evidence: float = MIN_EVIDENCE,
) -> float:
    """The evidence of the passages, or of their parts if no passage has enough.

    Args:
        query: what was searched for.
        passages: what was found, best first.
        embed: computes vectors of texts; used only if no passage is close enough.
        min_evidence: what is asked of a passage.
    """
    of_passages = evidence(passages)
    if of_passages >= min_evidence:
        return of_passages
    found = [part for one in passages for part in _parts(one)][:_MAX_PARTS]
    if not found:
        return of_passages
    terms = content_terms(query)
    vectors = embed([query, *found])
    best = max(
        float(cosine) + WORDS_WEIGHT * len(terms & content_terms(part)) / max(1, len(terms))
        for cosine, part in zip(vectors[1:] @ vectors[0], found, strict=True)
    )
    return max(of_passages, min(1.0, best) - (LEADING_MARGIN if _leads(passages) else PART_MARGIN))


def _leads(passages: Sequence[Passage]) -> bool:
    """Whether one passage stands out, as the only one about the question does; neighbouring ones do not."""
    first, second = [*sorted((one.score for one in passages), reverse=True), 0.0][:2]
    return first - second >= LEAD


def _parts(passage: Passage) -> list[str]:
    """The rows of its tables and its sentences, those with too little to compare left out."""
    tables = tables_of(NumberedPassage.of(1, passage))
    rows = [one.statement for one in tables.rows]
    prose = [one for span in tables.prose for one in sentences(passage.text[slice(*span)])]
    return [one for one in rows + prose if len(one) >= _MIN_CHARACTERS and _WORD.search(one)]


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
    joined: dict[str, list[str]] = {}
    for parts, word in joined_words(folded_form(question)):
        for part in parts:
            joined.setdefault(part, []).append(word)

    def is_known(name: str) -> bool:
        # `KX-4471` may be written `KX4471`.
        words = (name, folded(name), *joined.get(folded_form(name), ()))
        return folded(name) in called or mentions(" ".join(words))

    return tuple(name for name in asked_names(question)[:MAX_ASKED_NAMES] if not is_known(name))
