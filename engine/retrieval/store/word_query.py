"""A user's text as a query of the word index."""

import unicodedata
from itertools import groupby

MAX_WORDS = 64


def query_words(query: str) -> list[str]:
    """The different words of a text as the index splits them, in their order, at most `MAX_WORDS`."""
    runs = groupby(query.lower(), key=_in_word)
    return list(dict.fromkeys("".join(run) for inside, run in runs if inside))[:MAX_WORDS]


def any_of(words: list[str]) -> str:
    """An FTS5 expression that finds rows with any of the words."""
    return " OR ".join(f'"{word}"' for word in words)


def _in_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LN" or category in ("Co", "Mn", "Mc")
