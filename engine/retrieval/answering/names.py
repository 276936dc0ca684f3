"""The names in a text: words whose capital letter says that they stand for one person, thing or place.

A capital letter says so where a sentence does not begin and where the language writes common nouns small.
German does not, so callers ask `capitalises_nouns` first; scripts without capitals have none here. A word
that begins a sentence may be a name or not: `Names.possible`. Months, weekdays, titles, units and currencies
are none, though they are written with capitals.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.retrieval.answering.calendar_words import is_calendar_word
from engine.retrieval.answering.sentences import sentences
from engine.retrieval.answering.terms import folded, plain_words
from engine.retrieval.search.query_terms import is_frequent
from engine.retrieval.store.word_forms import plain_form

_WORD = re.compile(r"[^\W_]+")
_OPENS = re.compile(r"[:(\[\"“„«‘|]\W*\Z")
_GERMAN = frozenset(
    [
        "der",
        "das",
        "und",
        "ist",
        "nicht",
        "mit",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "dem",
        "des",
        "auf",
        "für",
        "von",
        "wird",
        "werden",
        "sind",
        "auch",
        "bei",
        "oder",
        "als",
        "wenn",
        "kann",
        "durch",
        "über",
        "wer",
        "wie",
        "wo",
        "wann",
        "warum",
        "welche",
        "welcher",
        "welches",
        "wem",
        "wen",
        "woher",
        "zum",
        "zur",
    ]
)
_GERMAN_SHARE = 0.1
_TITLES_AND_UNITS = frozenset((
    "mr", "mrs", "ms", "miss", "dr", "prof", "sir", "madam", "no", "nr", "id", "ok",
    "eur", "usd", "gbp", "chf", "sek", "nok", "dkk", "jpy", "inr", "vat",
    "kb", "mb", "gb", "tb", "kib", "mib", "gib", "kg", "km", "kw", "kwh", "mwh", "gwh",
    "hz", "khz", "mhz", "ghz",
    "pdf", "url", "faq",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a text, folded as by `terms.folded`.

    Attributes:
        certain: words that are names wherever they stand.
        possible: capitalised words that begin a sentence, which names and other words do.
    """

    certain: frozenset[str]
    possible: frozenset[str]


def names_of(text: str) -> Names:
    """The names of a text. Words of one letter, frequent words and words of the calendar are none."""
    certain: set[str] = set()
    possible: set[str] = set()
    for word, is_certain in _capitalised(text):
        (certain if is_certain else possible).add(folded(word))
    return Names(frozenset(certain), frozenset(possible - certain))


def asked_names(question: str) -> list[str]:
    """The certain names of a question, as they are spelled there.

    Only sentences with a question mark count if there is one. There are none in German, in a question in
    capitals, and in words that are written like a title.
    """
    asking = [one for one in sentences(question) if "?" in one]
    if capitalises_nouns(question) or question.upper() == question:
        return []
    if not asking and _is_title(question):
        return []
    found = [
        word for one in asking or [question] for word, is_certain in _capitalised(one) if is_certain
    ]
    return list(dict.fromkeys(found))


def _is_title(text: str) -> bool:
    """Whether all its words but frequent ones are capitalised."""
    return all(is_frequent(word) or not word[0].islower() for word in _WORD.findall(text))


def _capitalised(text: str) -> Iterator[tuple[str, bool]]:
    """The capitalised words of a text, and for each whether it is a name wherever it stands."""
    for sentence in sentences(plain_form(text)):
        for at, word in enumerate(_WORD.finditer(sentence)):
            if not word[0][0].isupper() or len(word[0]) == 1 or _is_no_name(word[0]):
                continue
            opens = at == 0 or _OPENS.search(sentence, 0, word.start()) is not None
            yield word[0], not opens or _is_unusual(word[0])


def capitalises_nouns(text: str) -> bool:
    """Whether a text is German, by its frequent words; capitals say nothing about names there."""
    words = [word.lower() for word in _WORD.findall(plain_form(text))]
    german = sum(word in _GERMAN for word in words)
    return german > _GERMAN_SHARE * len(words)


def folded_words(text: str) -> frozenset[str]:
    """Every word of a text, as names are folded."""
    return frozenset(map(folded, plain_words(text)))


def _is_no_name(word: str) -> bool:
    return is_frequent(word) or is_calendar_word(word) or word.lower() in _TITLES_AND_UNITS


def _is_unusual(word: str) -> bool:
    """Whether it is spelled as no ordinary word is: `B37`, `SQLite`, `NASA`."""
    return any(one.isupper() or one.isdigit() for one in word[1:])
