"""Checks each citation of an answer against its passage, also while the answer is being generated.

What comes out cites only passages that exist and that support the sentence (`support`):
  - a citation without support, or of a number that does not exist, is replaced by `UNSUPPORTED`;
  - a sentence without a citation gets that of the source that supports it best, if there is one, and all
    that support it only together;
  - a sentence that was said before is left out, because small models repeat themselves;
  - of a small model, a sentence that no source supports is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.retrieval.answering.claims import Claim, claims_of
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.support import Embed, Support, SupportJudge
from engine.retrieval.answering.windows import SourcePart

_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_CITATIONS_TO_COME = re.compile(r"(?:\[\d*\]?[ \t]*)+")
_OPEN_END = re.compile(r"(?:\n[ \t]*\S{0,4}[ \t]?|`+)\Z")  # may become a list item or a code block

UNSUPPORTED = "[unsupported]"
"""Stands in the answer for a citation that was dropped."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a source that supports a sentence.

    Attributes:
        text: the part, unchanged.
        start: byte offset of its first byte (see `ParsedDocument`); None if the file is not UTF-8.
        end: byte offset behind it; None likewise.
        line: the line on which it begins, from 1.
        sentence: the sentence of the answer.
    """

    text: str
    start: int | None
    end: int | None
    line: int
    sentence: str

    @classmethod
    def of(cls, source: NumberedPassage, support: Support, sentence: str) -> Self:
        """The quote that a support points at."""
        start, end = source.byte_span(support.start, support.end) or (None, None)
        text = source.text[support.start : support.end]
        return cls(text, start, end, source.line_at(support.start), sentence)


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that the answer cites, with the parts that support it."""

    source: NumberedPassage
    quotes: tuple[Quote, ...]

    @property
    def n(self) -> int:
        """The number in the answer."""
        return self.source.n


@dataclass(frozen=True, slots=True)
class DroppedCitation:
    """A citation that the model wrote and that was taken out.

    Attributes:
        n: the number.
        sentence: the sentence that it stood in.
        exists: whether there is a source of this number; if so, it does not support the sentence.
    """

    n: int
    sentence: str
    exists: bool


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the answer and the numbers it cites.

    `supported` is None if it says too little to be checked.
    """

    text: str
    supported: bool | None
    cites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VerifiedAnswer:
    """An answer whose citations were checked.

    Attributes:
        text: the answer as it may be shown.
        citations: the sources it cites, by number.
        dropped: the citations that were taken out.
        sentences: every sentence and what supports it.
    """

    text: str
    citations: tuple[Citation, ...]
    dropped: tuple[DroppedCitation, ...]
    sentences: tuple[CheckedSentence, ...]

    @property
    def is_supported(self) -> bool:
        """Whether a sentence is supported by a source."""
        return any(one.supported for one in self.sentences)


def verify(
    answer: str, sources: Sequence[NumberedPassage], embed: Embed, chain: Sequence[SourcePart] = ()
) -> VerifiedAnswer:
    """Check a complete answer.

    Args:
        answer: what the model wrote.
        sources: what it was given, numbered as in its prompt.
        embed: computes vectors of texts; the embedding model of the collection.
        chain: as for `SupportJudge`.
    """
    stream = VerifyingStream(SupportJudge(sources, embed, chain))
    stream.feed(answer)
    stream.finish()
    return stream.answer()


class VerifyingStream:
    """Checks an answer that arrives in pieces.

    Text is passed on at once, up to a bracket, white space at the end, or a sentence that may become a
    repetition. When the sentence is complete, the rest follows with its citations. The pieces joined are the
    text that `verify` returns for the whole answer.

    Attributes:
        ended: whether what follows is left out, so that it is not worth generating: the answer has said a
            sentence twice or, if it is limited to one paragraph, that paragraph is complete.
    """

    def __init__(
        self, judge: SupportJudge, *, one_paragraph: bool = False, supported_only: bool = False
    ) -> None:
        """Check an answer.

        Args:
            judge: has the sources.
            one_paragraph: leave out what follows the first paragraph with a sentence that can be checked.
            supported_only: pass on complete sentences only, and only those that a source supports.
        """
        self.ended = False
        self._one_paragraph, self._supported_only = one_paragraph, supported_only
        self._judge = judge
        self._numbers = {source.n: source for source in judge.sources}
        self._raw = ""
        self._done = 0  # the claims before this offset are complete
        self._shown = 0  # everything before this offset was passed on
        self._pieces: list[str] = []
        self._said: set[str] = set()
        self._quotes: dict[int, list[Quote]] = {}
        self._dropped: list[DroppedCitation] = []
        self._sentences: list[CheckedSentence] = []

    def feed(self, piece: str) -> str:
        """The text to show after this piece."""
        self._raw += piece
        found = list(claims_of(self._raw, self._done))
        if found and _CITATIONS_TO_COME.fullmatch(self._raw, found[-1].start):
            found.pop()  # they belong to the sentence before
        shown = [self._complete(claim) for claim in found[:-1]]
        if found:
            shown.append(self._begin(found[-1]))
        return self._pass_on("".join(shown))

    def finish(self) -> str:
        """The text to show at the end of the answer."""
        return self._pass_on(
            "".join(self._complete(claim) for claim in claims_of(self._raw, self._done))
        )

    def answer(self) -> VerifiedAnswer:
        """The result, after `finish`."""
        citations = tuple(
            Citation(self._numbers[n], tuple(self._quotes[n])) for n in sorted(self._quotes)
        )
        return VerifiedAnswer(
            "".join(self._pieces), citations, tuple(self._dropped), tuple(self._sentences)
        )

    def _pass_on(self, text: str) -> str:
        self._pieces.append(text)
        return text

    def _begin(self, claim: Claim) -> str:
        """The part of an incomplete claim that no citation and no repetition can change."""
        if self._supported_only:
            return ""
        start = max(claim.start, self._shown)
        text = self._raw[claim.start : claim.end]
        # Backticks at the end may become a fence, which is no part of the sentence.
        sentence = _key(text.rstrip("`"))
        if self._is_over(claim) or any(one.startswith(sentence) for one in self._said):
            return ""
        end = claim.end if claim.is_code else claim.start + len(_settled(text))
        if end <= start:
            return ""
        gap = "" if self._shown > claim.start else self._raw[self._done : claim.start]
        self._shown = end
        return gap + self._raw[start:end]

    def _is_over(self, claim: Claim) -> bool:
        """Whether a claim is left out whatever it says."""
        gap = self._raw[self._done : claim.start]
        if self._one_paragraph and self._said and _EMPTY_LINE.search(gap):
            self.ended = True
        return self.ended

    def _complete(self, claim: Claim) -> str:
        gap = "" if self._shown > claim.start else self._raw[self._done : claim.start]
        begun = max(self._shown, claim.start)
        key = _key(claim.text)
        if self._is_over(claim) or (key in self._said and begun == claim.start):
            self.ended = True
            self._done = self._shown = claim.end
            return ""
        self._done = claim.end
        if claim.is_code:
            self._shown = claim.end
            return "" if self._supported_only else gap + self._raw[begun : claim.end]
        if self._judge.is_checkable(claim.text):
            self._said.add(key)
        text = gap + self._cited(claim, begun)
        self._shown = claim.end
        if not self._supported_only:
            return text
        if not self._sentences[-1].supported:
            return ""
        return text if any(self._pieces) else text.lstrip()

    def _cited(self, claim: Claim, begun: int) -> str:
        """The rest of a complete claim from offset `begun` on, with the citations that hold."""
        checkable = self._judge.is_checkable(claim.text)
        supports = self._judge.supports(claim.text) if checkable else []
        by_number = {support.n: support for support in supports}
        kept = [n for n in dict.fromkeys(one.n for one in claim.markers) if n in by_number]
        pieces, at = [], begun
        for marker in claim.markers:
            pieces.append(self._raw[at : marker.start])
            at = marker.end
            if marker.n in by_number:
                pieces.append(f"[{marker.n}]")
            else:
                if pieces[-1].strip() or pieces[-2:-1] != [UNSUPPORTED]:
                    pieces.append(UNSUPPORTED)
                self._dropped.append(
                    DroppedCitation(marker.n, claim.text, marker.n in self._numbers)
                )
        pieces.append(self._raw[at : claim.end].rstrip())
        missing = _missing(supports, kept)
        pieces += [f" [{n}]" for n in missing[:1]] + [f"[{n}]" for n in missing[1:]]
        kept += missing
        for n in kept:
            self._quotes.setdefault(n, []).append(
                Quote.of(self._numbers[n], by_number[n], claim.text)
            )
        supported = bool(kept) if checkable else None
        self._sentences.append(CheckedSentence(claim.text, supported, tuple(kept)))
        return "".join(pieces)


def _missing(supports: Sequence[Support], kept: Sequence[int]) -> list[int]:
    """The numbers that a sentence lacks: the best one if it has none, and all that support it jointly."""
    joint = [one.n for one in supports if one.is_joint]
    wanted = joint or ([] if kept else [one.n for one in supports[:1]])
    return [n for n in dict.fromkeys(wanted) if n not in kept]


def _settled(text: str) -> str:
    """The beginning of an incomplete sentence that stays as it is, whatever follows."""
    return _OPEN_END.sub("", text.split("[", 1)[0]).rstrip()


def _key(sentence: str) -> str:
    return " ".join(sentence.split()).casefold()
