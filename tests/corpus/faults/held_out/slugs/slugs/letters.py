"""Letters without accents."""

import unicodedata

SPECIAL = {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l", "ð": "d"}


def plain(text: str) -> str:
    """The text with letters of ASCII where there is one that looks alike."""
    replaced = "".join(SPECIAL.get(letter, letter) for letter in text)
    parts = unicodedata.normalize("NFKD", replaced)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))
