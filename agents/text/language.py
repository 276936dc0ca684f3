"""The language of a text, by its script and its stop words."""

import unicodedata
from collections import Counter

from agents.text.words import STOP_WORDS, words

_SCRIPTS = {
    "DEVANAGARI": "hi", "ARABIC": "ar", "CYRILLIC": "ru", "GREEK": "el", "HEBREW": "he", "HANGUL": "ko",
    "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "THAI": "th", "BENGALI": "bn", "TAMIL": "ta",
    "TELUGU": "te", "GUJARATI": "gu",
}  # fmt: skip
_MIN_STOP_WORDS = 2
_MAX_CHARS = 20_000
NAMES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "swedish": "sv", "hindi": "hi", "arabic": "ar", "russian": "ru", "greek": "el",
    "hebrew": "he", "korean": "ko", "japanese": "ja", "chinese": "zh", "thai": "th", "bengali": "bn",
    "tamil": "ta", "telugu": "te", "gujarati": "gu",
}  # fmt: skip


def language_of_text(text: str) -> str | None:
    """ISO 639-1 code, or None where the text is too short to tell.

    A script used by several languages gives its most common one: Devanagari gives Hindi, Cyrillic Russian.
    """
    text = text[:_MAX_CHARS]
    scripts = Counter(_script(char) for char in text if char.isalpha())
    if not scripts:
        return None
    if scripts["ja"]:  # Japanese mixes kana with Han characters
        scripts["ja"] += scripts.pop("zh", 0)
    script, _ = scripts.most_common(1)[0]
    return script or _by_stop_words(text)


def _script(char: str) -> str:
    """The language of a character's script; empty for Latin and scripts that are not known."""
    if char.isascii():
        return ""
    return _SCRIPTS.get(unicodedata.name(char, "").split(" ")[0], "")


def _by_stop_words(text: str) -> str | None:
    counts = Counter(word.text.lower() for word in words(text))
    scores = {
        language: sum(count for word, count in counts.items() if word in known)
        for language, known in STOP_WORDS.items()
    }
    (best, score), (_, second) = sorted(scores.items(), key=lambda item: -item[1])[:2]
    return best if score >= _MIN_STOP_WORDS and score > second else None
