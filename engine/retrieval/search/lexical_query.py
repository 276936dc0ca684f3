"""`LexicalQuery`: what to look up in the full-text indexes for a text that a person typed.

Nothing in the text is an operator of FTS5's query language: every term is passed as a quoted string. Terms
are joined by OR and ranked by BM25, so a question finds passages that have only some of its words.

The word index splits at everything but letters and digits, which breaks scripts that are written without
spaces (Chinese, Japanese, Thai) or whose vowels are combining marks (Devanagari). Runs of such scripts are
looked up in the trigram index instead, as overlapping groups of three characters.
"""

import re
from dataclasses import dataclass

MAX_TERMS = 48
"""Terms looked up for one text. The cost of a query grows with the number of rows that match."""

GRAM = 3
"""Characters of a term of the trigram index; shorter runs can't be found in it."""

_RUNS = re.compile(r"[^\W_]+(?:[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+[^\W_]*)*")

_STOP_WORDS = frozenset(
    "a about an and any are as at be been but by can could did do does for from had has have how i if in "
    "into is it its may me my no not of on one or our should so some such than that the their them then "
    "there these they this those to up was we were what when where which who whom whose why will with would "
    "you your".split()
)


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """Match expressions of FTS5; an empty one finds nothing.

    Attributes:
        words: for the word index.
        trigrams: for the trigram index.
    """

    words: str
    trigrams: str

    def __bool__(self) -> bool:
        return bool(self.words or self.trigrams)


def lexical_query(text: str) -> LexicalQuery:
    """The look-ups for a text; any string is valid. Cost: O(length)."""
    words: list[str] = []
    grams: list[str] = []
    for run in _RUNS.findall(text):
        if _needs_trigrams(run):
            grams += [run[at : at + GRAM] for at in range(max(1, len(run) - GRAM + 1))]
        else:
            words.append(run.lower())
    telling = [word for word in words if word not in _STOP_WORDS]
    # A question of nothing but frequent words ("what is it?") is still looked up.
    return LexicalQuery(
        _any_of(telling or words), _any_of([gram for gram in grams if len(gram) >= GRAM])
    )


def query_terms(text: str) -> list[str]:
    """The distinct words of a text that tell its topic, lower-case, in order; for scripts with spaces."""
    words = [run.lower() for run in _RUNS.findall(text) if not _needs_trigrams(run)]
    return list(dict.fromkeys(word for word in words if word not in _STOP_WORDS))


def _any_of(terms: list[str]) -> str:
    distinct = list(dict.fromkeys(terms))[:MAX_TERMS]
    return " OR ".join(f'"{term}"' for term in distinct)


def _needs_trigrams(run: str) -> bool:
    return any(_is_unspaced(ord(character)) for character in run)


def _is_unspaced(code: int) -> bool:
    """Whether a character's script has no spaces between words, or combining vowels.

    From Devanagari to Sinhala, Thai to Tibetan, Myanmar, Khmer; kana, Han and their extensions. Hangul has
    spaces, but its particles are written onto the word: trigrams find the stem.
    """
    return (
        0x0900 <= code <= 0x109F
        or 0x1100 <= code <= 0x11FF
        or 0x1780 <= code <= 0x17FF
        or 0x3040 <= code <= 0x31FF
        or 0x3400 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7AF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
    )
