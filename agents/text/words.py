"""Words of a text: tokens with their places, stop words of eight languages, and a light English stemmer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

# Indic and Thai vowel signs are no letters to `\w`; the danda (U+0964, U+0965) is no part of a word.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff"
_WORD = re.compile(rf"[^\W_][\w{_MARKS}]*(?:['’\-][^\W_][\w{_MARKS}]*)*")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")

_STOP_WORDS = {
    "en": "a about above after again against all also am an and any are as at be because been before being "
    "below between both but by can could did do does doing down during each few for from further had has "
    "have having he her here hers him his how i if in into is it its itself just me more most must my no "
    "nor not of off on once only or other our out over own per same shall she should so some such than "
    "that the their them then there these they this those through to too under until up upon us very was "
    "we were what when where which while who whom whose why will with within without would you your",
    "de": "aber alle als am an auch auf aus bei bin bis bist da damit das dass dem den der des die dies "
    "diese dieser dieses doch durch ein eine einem einen einer eines er es für hat haben ich ihr ihre im "
    "in ist ja kann kein keine mit muss nach nicht noch nur ob oder ohne sehr sein seine sich sie sind so "
    "über um und unter vom von vor war was wenn werden wie wir wird zu zum zur sowie vor ihre ihren",
    "fr": "à afin ainsi au aux avec ce ces cette comme dans de des du elle elles en est et être il ils je "
    "la le les leur lui mais ne nous on ou où par pas plus pour qu que qui sa se ses son sont sur tout "
    "très un une vos votre vous été avant après",
    "es": "a al antes como con de del desde después donde el ella en es esta este la las le lo los más mi "
    "muy no nos o para pero por que se ser si sin sobre son su sus también tiene un una y ya fue han",
    "it": "a ai al alla anche che chi ci come con da dal dalla dei del della di dopo e è gli ha i il in io "
    "la le lo ma nel nella non o per più prima se si sono su sua suo tra un una uno vi loro questo",
    "pt": "a ao as até com como da das de do dos e ela ele em entre é foi há isso já mais mas na não no nos "
    "o os ou para pela pelo por quando que se sem ser seu sua são também tem um uma você",
    "nl": "aan al als bij dan dat de deze die dit door een en er haar heb heeft het hij hoe ik in is je kan "
    "maar me met mijn na naar niet nog nu of om onder ons ook op over te tot uit uw van voor was wat we "
    "wel wij wordt worden ze zich zij zijn zo zou",
    "sv": "alla att av de den det du där efter en ett från för han har hon i inte jag kan med men mot när "
    "och om på som så till under upp ut var vi vid är över",
}
STOP_WORDS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written, and its offset in the text."""

    text: str
    start: int


def words(text: str) -> list[Word]:
    """All words, numbers included."""
    return [Word(match.group(), match.start()) for match in _WORD.finditer(text)]


def terms(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order. Han and Kana give overlapping pairs of characters."""
    return list(_terms(text))


def _terms(text: str) -> Iterator[str]:
    for word in words(text):
        lower = word.text.lower().replace("’", "'").removesuffix("'s")
        runs = _CJK.findall(lower)
        if runs:
            for run in runs:
                yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        elif lower not in STOP_WORDS["en"] and (len(lower) > 1 or lower.isdigit()):
            yield stem(lower)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """An English word without its inflection: `ships` → `ship`, `extended` → `extend`, `cities` → `citi`.

    Related words get the same stem; the stem need not be a word. Words of other scripts stay as they are.
    """
    if not word.isascii() or len(word) < 4 or not word.isalpha():
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ingly", "edly", "ing", "ed"):
        if word.endswith(suffix) and re.search("[aeiouy]", word[: -len(suffix)]):
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


_IRREGULAR = {
    form: base
    for base, forms in {
        "buy": "bought", "sell": "sold", "rise": "risen rose", "fall": "fell fallen", "give": "gave given",
        "take": "took taken", "make": "made", "find": "found", "write": "wrote written", "know": "knew known",
        "grow": "grew grown", "begin": "began begun", "build": "built", "hold": "held", "keep": "kept",
        "lose": "lost", "lead": "led", "meet": "met", "pay": "paid", "send": "sent", "spend": "spent",
        "stand": "stood", "tell": "told", "think": "thought", "teach": "taught", "bring": "brought",
        "leave": "left", "speak": "spoke spoken", "break": "broke broken", "choose": "chose chosen",
        "drive": "drove driven", "run": "ran running", "show": "shown", "man": "men", "child": "children",
        "woman": "women", "person": "people", "extend": "extension extensions", "say": "said",
        "decid": "decision decisions",
    }.items()
    for form in forms.split()
}  # fmt: skip
_IRREGULAR = {form: base[:-1] if base.endswith("e") else base for form, base in _IRREGULAR.items()}
