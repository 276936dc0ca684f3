"""Statistics of English text: length, passive voice, Flesch reading ease.

Flesch, "A new readability yardstick", Journal of Applied Psychology 32 (1948).
"""

import re
from dataclasses import dataclass

from agents.text.language import language_of_text
from agents.text.sentences import sentences
from agents.text.words import words

_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:\w+ly\s+)?(?:\w{2,}ed|\w{2,}wn|made|done|built|"
    r"given|taken|written|sent|found|held|kept|sold|told|paid|read|run|put|set|cut|lost|left|seen|chosen)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts, and for English text the share of passive sentences and the reading ease (else None)."""

    words: int
    sentences: int
    passive_share: float
    reading_ease: float | None

    @property
    def words_per_sentence(self) -> float:
        """The mean; 0 for an empty text."""
        return self.words / self.sentences if self.sentences else 0.0


def measure(text: str) -> Statistics:
    """The statistics of a text; headings and code are left out."""
    found = [one for one in sentences(text) if not one.heading]
    count = sum(len(words(one.text)) for one in found)
    english = language_of_text(text) == "en"
    passive = sum(1 for one in found if english and _PASSIVE.search(one.text))
    ease = None
    if english and count:
        syllables = sum(_syllables(word.text) for one in found for word in words(one.text))
        ease = round(206.835 - 1.015 * count / len(found) - 84.6 * syllables / count, 1)
    return Statistics(count, len(found), passive / len(found) if found else 0.0, ease)


def _syllables(word: str) -> int:
    """Groups of vowels, a silent final `e` left out; at least 1."""
    groups = len(re.findall("[aeiouy]+", word.lower()))
    return max(1, groups - (1 if re.search("[^aeiouyl]e$", word.lower()) else 0))
