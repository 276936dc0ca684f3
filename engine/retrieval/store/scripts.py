"""Scripts whose words an index of words does not find well, so that their text is indexed by trigrams, too.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces between words. Korean and the
scripts of India have spaces, but endings are written onto the word, and trigrams find the stem.
"""

import re
from enum import IntEnum

from engine.retrieval.store.word_forms import folded_form

_UNSPACED = re.compile(
    "[\u0900-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)


class Unspaced(IntEnum):
    """Whether a text has characters of such a script, and how they are spelled."""

    NONE = 0
    FOLDED = 1
    """They are those of its folded form."""
    UNFOLDED = 2
    """They are not, such as half-width katakana."""


def unspaced_kind(text: str) -> Unspaced:
    """Whether a text has characters of such a script. Cost: nothing for ASCII, else some passes."""
    if text.isascii():
        return Unspaced.NONE
    runs = unspaced_runs(folded_form(text))
    if not runs:
        return Unspaced.NONE
    return Unspaced.FOLDED if runs == unspaced_runs(text) else Unspaced.UNFOLDED


def unspaced_runs(text: str) -> list[str]:
    """The different runs of such characters, in their order."""
    return list(dict.fromkeys(_UNSPACED.findall(text)))
