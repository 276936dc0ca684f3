"""Scripts whose words an index of words does not find well, so that their text is indexed by trigrams, too.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces between words. Korean and the
scripts of India have spaces, but endings are written onto the word, and trigrams find the stem.
"""

import re

_UNSPACED = re.compile(
    "[\u0900-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)


def has_unspaced(text: str) -> bool:
    """Whether a text has a character of such a script. Cost: nothing for ASCII, else one pass at most."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def unspaced_runs(text: str) -> list[str]:
    """The different runs of such characters, in their order."""
    return list(dict.fromkeys(_UNSPACED.findall(text)))
