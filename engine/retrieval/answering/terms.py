"""The words of a text that carry its meaning, in a form in which they can be compared.

Word forms are folded by cutting English endings; this needs no dictionary and is applied to both sides, so
that an error of the folding costs nothing unless it joins two different words. Scripts without spaces are
taken as pairs of characters.
"""

import re

from engine.retrieval.search.query_terms import query_terms

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?!\w)")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "edly", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 4
_CITATION = re.compile(r"\[\d{1,3}\]")
_WORD = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(
    r"`([^`]+)`|\b(\w+_\w+)\b|\b([a-z]+[A-Z]\w*|[A-Z]\w*[A-Z]\w*)\b"  # code, snake_case, camelCase or ABC
)


def content_terms(text: str) -> frozenset[str]:
    """Folded words without frequent ones; pairs of characters where words have no spaces between them."""
    text = _CITATION.sub(" ", text)
    words = {folded(word) for word in query_terms(text)}
    for run in _UNSPACED.findall(text):
        words.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return frozenset(words)


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, without separators of thousands; those of citations are left out."""
    found = _NUMBER.findall(_CITATION.sub(" ", text))
    return frozenset(number.replace(",", "") for number in found)


def identifiers(text: str) -> frozenset[str]:
    """The words of names that stand for one thing: code in backticks, `snake_case`, `camelCase`, `ABC`."""
    found: set[str] = set()
    for match in _IDENTIFIER.finditer(text):
        found |= plain_words(next(filter(None, match.groups())))
    return frozenset(word for word in found if len(word) > 1)


def plain_words(text: str) -> frozenset[str]:
    """All words in lower case, split at everything but letters and digits."""
    return frozenset(map(str.lower, _WORD.findall(text)))


def folded(word: str) -> str:
    """A word in lower case without its English ending, if a stem of four letters is left."""
    word = word.lower()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
