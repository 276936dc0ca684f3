"""A user's text as a query of the word index."""

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from engine.retrieval.store.word_forms import folded_form, joined_words

MAX_WORDS = 64

Spellings = tuple[str, ...]
"""A word of a query as the index splits it, and behind it the joined words that have it as a part."""


def query_words(query: str) -> list[Spellings]:
    """The different words of a text as the index splits them, in their order, at most `MAX_WORDS`."""
    folded = folded_form(query)
    runs = groupby(folded, key=_in_word)
    found = dict.fromkeys("".join(run) for inside, run in runs if inside)
    words: dict[str, list[str]] = {word: [] for word in list(found)[:MAX_WORDS]}
    for parts, joined in joined_words(folded):
        for part in parts:
            if joined not in words.get(part, [joined]):
                words[part].append(joined)
    return [(word, *joined) for word, joined in words.items()]


def any_of(words: Iterable[Sequence[str]]) -> str:
    """An FTS5 expression that finds rows with any of the words, in any of their spellings."""
    return " OR ".join(f'"{one}"' for one in dict.fromkeys(chain.from_iterable(words)))


def _in_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LN" or category in ("Co", "Mn", "Mc")
