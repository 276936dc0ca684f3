"""`is_prose`: whether a model's text is worth showing at all.

Small models fill a text with numbers or repeat a few words. Such a text is dropped, and the procedure's
reason why it could write none stands. The check says nothing about whether the text is true.
"""

import re

MIN_LETTERS = 0.6
"""Least share of letters among the characters that are not spaces."""
MIN_DISTINCT = 0.4
"""Least share of different words, for texts of `MIN_WORDS` words and more."""
MIN_WORDS = 8


def is_prose(text: str) -> bool:
    """Whether the text consists mostly of words, and not of the same ones."""
    characters = [one for one in text if not one.isspace()]
    if not characters:
        return False
    letters = sum(one.isalpha() for one in characters) / len(characters)
    words = re.findall(r"\w+", text.lower())
    distinct = len(set(words)) / max(1, len(words))
    return letters >= MIN_LETTERS and (len(words) < MIN_WORDS or distinct >= MIN_DISTINCT)
