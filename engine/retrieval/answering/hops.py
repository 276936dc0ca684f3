"""Several searches for one question: names that a passage introduces lead to the next one.

"Where does the person who keeps the turbine work?" takes two passages that share only a name: the first
says who keeps the turbine, the second where that person works. The first search finds the first. Its sentence
that fits the question best has a name that the question has not: the *bridge*. The next search is for the
bridge and the words of the question that are still unexplained. A passage, also one that is there already, is
linked if it

  - names the bridge, in the sentence or in title and headings, and
  - explains more of the question: a sentence of it has a word of the question that no sentence before had.

A question that its first passages answer has no such word left for another passage to explain, so it is
searched once. Rounds are bounded by the caller. No model is asked: the demo model writes no usable partial
questions (docs/retrieval.md).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.retrieval.answering.names import capitalises_nouns, folded_words, names_of
from engine.retrieval.answering.numbered_passage import NumberedPassage, labels_of
from engine.retrieval.answering.sentences import sentence_spans
from engine.retrieval.answering.terms import content_terms, folded
from engine.retrieval.answering.windows import SourcePart
from engine.retrieval.api.passage import Passage
from engine.retrieval.search.query_terms import query_terms
from engine.retrieval.store.word_forms import plain_form

MAX_ROUNDS = 3
"""Searches one behind the other, the first included."""

MAX_BRIDGES = 2
"""Names that one round follows; each costs a search."""

_WORD = re.compile(r"[^\W_]+")
_MAX_BRIDGE_WORDS = 4


@dataclass(frozen=True, slots=True)
class Link:
    """A sentence of a passage that explains a part of the question."""

    passage: Passage
    start: int
    end: int

    @property
    def text(self) -> str:
        """The sentence."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Round:
    """One search.

    Attributes:
        query: what was searched for.
        bridge: the name that led to it; empty in the first round.
        passages: what it added, best first.
    """

    query: str
    bridge: str
    passages: tuple[Passage, ...]


def followed(
    query: str,
    passages: Sequence[Passage],
    search: Callable[[str], Sequence[Passage]],
    *,
    rounds: int = MAX_ROUNDS,
) -> "Hops":
    """Search on from what was found, at most `rounds` times with the search that found it."""
    hops = Hops(query, passages, rounds=rounds)
    while (wanted := hops.next_search()) is not None:
        hops.take(search(wanted.query))
    return hops


def chain_parts(chain: Sequence[Link], sources: Sequence[NumberedPassage]) -> list[SourcePart]:
    """A chain in the texts of sources; empty if one of its sentences is in none of them."""
    parts: list[SourcePart] = []
    for link in chain:
        for source in sources:
            at = source.text.find(link.text)
            if at >= 0 and source.passage.document_id == link.passage.document_id:
                parts.append(SourcePart(source.n, at, at + len(link.text)))
                break
    return parts if len(parts) == len(chain) else []


@dataclass(frozen=True, slots=True)
class NextSearch:
    """What to search for, and the name that leads there."""

    query: str
    bridge: str


class Hops:
    """The searches of one question. The caller searches, in its own way to wait (see `followed`).

    Attributes:
        rounds: the searches so far that added something, and the first.
        chain: the sentences that lead to the answer, in order; empty if one passage is enough.
    """

    def __init__(
        self, query: str, passages: Sequence[Passage], *, rounds: int = MAX_ROUNDS
    ) -> None:
        """Begin with what the first search found."""
        self.rounds = [Round(query, "", tuple(passages))]
        self.chain: list[Link] = []
        self._query = query
        self._left = rounds - 1
        self._terms = content_terms(query)
        self._asked = folded_words(query)
        self._known = {one.chunk_id: one for one in passages}
        self._last: Link | None = None  # what the searches of this round go on from
        self._explained: frozenset[str] = frozenset()
        self._wanted: list[NextSearch] = []
        self._begin(self._first_link(passages) if rounds > 1 else None)

    def best(self, k: int) -> list[Passage]:
        """The first `k` of `passages`, and more if the chain has more."""
        return self.passages[: max(k, len(self.chain))]

    def bridge_to(self, passage: Passage) -> str:
        """The name that led to a passage; empty for those of the first search."""
        return next((one.bridge for one in self.rounds if passage in one.passages), "")

    @property
    def passages(self) -> list[Passage]:
        """What was found: the passages of the chain in its order, then the others of the first round."""
        leading = {one.passage.chunk_id: one.passage for one in self.chain}
        rest = {one.chunk_id: one for one in self.rounds[0].passages}
        return list(
            (leading | {key: one for key, one in rest.items() if key not in leading}).values()
        )

    def next_search(self) -> NextSearch | None:
        """The next search; None if there is no name to follow, or no round left."""
        return self._wanted[0] if self._wanted else None

    def take(self, found: Sequence[Passage]) -> None:
        """Note what `next_search` has found."""
        wanted = self._wanted.pop(0)
        self._asked |= folded_words(wanted.bridge)
        new = [one for one in found if one.chunk_id not in self._known]
        added = next(self._explaining(new, wanted.bridge), None)
        if added is None:
            return
        self.rounds.append(Round(wanted.query, wanted.bridge, (added.passage,)))
        self._known[added.passage.chunk_id] = added.passage
        self._left -= 1
        self._link(added)

    def _first_link(self, passages: Sequence[Passage]) -> Link | None:
        """The sentence with a new name that has most words of the question, of a passage with its names."""
        asked = names_of(self._query).certain
        links = [
            Link(passage, start, end)
            for passage in passages
            if asked <= folded_words(f"{passage.text} {labels_of(passage)}")
            for start, end in sentence_spans(passage.text)
            if any(_bridges(passage.text[start:end], self._asked))
        ]
        return max(links, key=self._fit, default=None)

    def _fit(self, link: Link) -> int:
        """How many words of the question a sentence has."""
        return len(self._terms & content_terms(link.text))

    def _link(self, added: Link) -> None:
        """Make a sentence the end of the chain."""
        if self._last is not None:
            self.chain = [*(self.chain or [self._last]), added]
        self._begin(added)

    def _begin(self, link: Link | None) -> None:
        """Go on from a link: its names are the bridges, to passages that are there or of the next round."""
        self._last, self._wanted = link, []
        if link is None or capitalises_nouns(link.passage.text):
            return
        self._explained |= content_terms(f"{link.text} {labels_of(link.passage)}")
        open_words = [
            word for word in query_terms(self._query) if folded(word) not in self._explained
        ]
        bridges = list(_bridges(link.text, self._asked))[:MAX_BRIDGES] if open_words else []
        linked = {one.passage.chunk_id for one in self.chain} | {link.passage.chunk_id}
        there = [one for key, one in self._known.items() if key not in linked]
        for bridge in bridges:
            if (one := next(self._explaining(there, bridge), None)) is not None:
                self._asked |= folded_words(bridge)
                self._link(one)
                return
        if self._left > 0:
            self._wanted = [NextSearch(" ".join((one, *open_words)), one) for one in bridges]

    def _explaining(self, found: Sequence[Passage], bridge: str) -> Iterator[Link]:
        """Sentences of passages that name the bridge and explain more of the question."""
        bridge_words = folded_words(bridge)
        open_terms = self._terms - self._explained
        for passage in found:
            labels = labels_of(passage)
            links = [Link(passage, *span) for span in sentence_spans(passage.text)]
            gains = [
                (len(open_terms & content_terms(one.text)), one)
                for one in links
                if bridge_words <= folded_words(f"{one.text} {labels}")
            ]
            gain, best = max(gains, key=lambda one: one[0], default=(0, None))
            if gain and best is not None:
                yield best


def _bridges(text: str, asked: frozenset[str]) -> Iterator[str]:
    """The names of a text that the question has not; neighbouring words are one name."""
    text = plain_form(text)
    names = names_of(text)
    run: list[str] = []
    end = 0
    for word in [*_WORD.finditer(text), None]:
        is_name = (
            word is not None
            and folded(word[0]) in names.certain | names.possible
            and word[0][0].isupper()
            and folded(word[0]) not in asked
        )
        if word is not None and is_name and run and text[end : word.start()] in (" ", "-", "\n"):
            run.append(word[0])
        else:
            if any(folded(one) in names.certain for one in run):
                yield " ".join(run[:_MAX_BRIDGE_WORDS])
            run = [word[0]] if word is not None and is_name else []
        end = word.end() if word is not None else 0
