"""The words of a text that carry its meaning, in a form in which they can be compared.

Characters are folded as in the word indexes (`word_forms`). Word forms are folded by cutting English endings;
this needs no dictionary and is applied to both sides, so that an error of the folding costs nothing unless it
joins two different words. Scripts without spaces are taken as pairs of characters.
"""

import re

from engine.retrieval.search.query_terms import query_terms
from engine.retrieval.store.word_forms import folded_form, plain_form

_NUMBER = re.compile(
    r"(?<![\w.])(?:(?P<time>(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))? ?(?P<half>[ap])\.?m\b)"
    r"|(?P<thousands>\d{1,3}(?:,\d{3})+(?:\.\d+)?)(?!\d|,\d)"
    r"|(?P<points>\d{1,3}(?:\.\d{3})+,\d+)"
    r"|(?P<comma>\d+,\d{1,2})(?!\d|,\d)"
    r"|(?P<plain>\d+(?:\.\d+)*))"
    r"(?![\d_])(?=[^\W\d_]{0,4}(?!\w))",  # a unit of up to four letters may follow
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<![\w.])\d{1,2}\.\d{1,2}\.\d{4}(?![\w.]\w)|(?<![\w.])\d{4}\.\d{1,2}\.\d{1,2}(?!\w)"
)
_GLUED_UNIT = re.compile(r"(?<=\d)[a-z]{1,4}(?!\w)")
HALVES = frozenset(("am", "pm"))
"""Of the day: `numbers` reads them."""
_GROUPED = re.compile("(?<=\\d)[\u00a0\u2009\u202f'\u2019](?=\\d{3}(?!\\d))")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "es", "ly", "s", "e")
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
    """The numbers of a text; those of citations are left out.

    Without separators of thousands, leading zeros and the zeros of `12.00`, and hours of the afternoon as
    those of 24 hours, so that spellings of one value are equal. A unit behind it is left out.
    """
    text = plain_form(_GROUPED.sub("", _CITATION.sub(" ", text)))
    text = _DATE.sub(lambda date: date[0].replace(".", "/"), text)
    found: set[str] = set()
    for match in _NUMBER.finditer(text):
        found.update(_values(match))
    return frozenset(found)


def _values(match: re.Match[str]) -> list[str]:
    if match["time"]:
        hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
        return [str(hour), *([_value(match["minute"])] if match["minute"] else [])]
    if match["points"]:
        return [_value(match["points"].replace(".", "").replace(",", "."))]
    if match["comma"]:
        return [_value(match["comma"].replace(",", "."))]
    return [_value((match["thousands"] or match["plain"]).replace(",", ""))]


def _value(number: str) -> str:
    whole, point, rest = number.partition(".")
    whole = whole.lstrip("0") or "0"
    return whole if not point or rest == "00" else f"{whole}.{rest}"


def identifiers(text: str) -> frozenset[str]:
    """The words of names that stand for one thing: code in backticks, `snake_case`, `camelCase`, `ABC`."""
    found: set[str] = set()
    for match in _IDENTIFIER.finditer(plain_form(text)):
        found |= plain_words(next(filter(None, match.groups())))
    return frozenset(word for word in found if len(word) > 1 and word not in HALVES)


def glued_units(text: str) -> frozenset[str]:
    """The units that are written onto their number, such as `15GB`."""
    return frozenset(_GLUED_UNIT.findall(folded_form(text)))


def plain_words(text: str) -> frozenset[str]:
    """All words, folded in their characters, split at everything but letters and digits."""
    return frozenset(_WORD.findall(folded_form(text)))


def folded(word: str) -> str:
    """A word, folded in its characters, without its English ending if a stem of four letters is left."""
    word = folded_form(word)
    if word.endswith(("ies", "ied")) and len(word) > _SHORTEST_STEM:
        return f"{word[:-3]}y"  # as the singular
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
