"""`query_terms`: the words of a text that tell its topic."""

import re

from engine.retrieval.store.word_forms import folded_form

_WORD = re.compile(
    r"[^\W_]+(?:[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+[^\W_]*)*"
)
_FREQUENT_WORDS = (
    "a about an and any are as at be been but by can could did do does for from had has have how i if in "
    "into is it its may me my no not of on one or our s should so some such t than that the their them then "
    "there these they this those to up was we were what when where which who whom whose why will with would "
    "you your"
)
_FREQUENT = frozenset(_FREQUENT_WORDS.split())


def query_terms(text: str) -> list[str]:
    """The distinct words of a text, folded, in order, without the most frequent English ones.

    A run of a script without spaces is one word.
    """
    words = _WORD.findall(folded_form(text))
    return list(dict.fromkeys(word for word in words if word not in _FREQUENT))


def is_frequent(word: str) -> bool:
    """Whether a word is one of the most frequent English ones."""
    return word.lower() in _FREQUENT
