"""The forms in which words are compared, so that what looks the same is found as the same.

Documents spell one word in several ways that a reader does not see: with ligatures, soft hyphens, zero-width
characters, full-width letters, non-breaking hyphens, combining or precomposed accents, Arabic presentation
forms. Three forms are derived from a text; none of them is shown, and offsets always refer to the text.

- `plain_form`: one spelling for each character, capitals and accents kept (names are told by capitals).
- `folded_form`: that in lower case, without accents.
- `search_form`: that with the joined spellings of compounds behind it. It is what the word indexes hold.

What is decided: a soft hyphen and a zero-width space are nothing. A superscript is a word of its own, and
joined to the one before it, so that a footnote mark does not hide the word (`plan¹`). Compounds are found in
parts and joined (`KX-4471`: `kx`, `4471`, `kx4471`), and so is a word that a line break divides. Turkish `ı`
and `İ` are `i`. `ß` is `ss`, `æ` is `ae`, `ø` is `o`; `ü` is `u` and not `ue`. Digits of all scripts are
those of ASCII.
"""

import re
import unicodedata
from collections.abc import Iterator

_INVISIBLE = re.compile(
    "\u00ad[ \\t]*\r?\n[ \\t]*"  # a word that a line break divides
    "|[\u00ad\u034f\u061c\u0640\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_SAME = str.maketrans(
    {
        **dict.fromkeys(
            "\u02d7\u058a\u1806\u2010\u2011\u2012\u2013\u2043\u2212\ufe58\ufe63\uff0d", "-"
        ),
        **dict.fromkeys(
            "\u00b4\u02b9\u02bb\u02bc\u02bd\u055a\u2018\u2019\u201b\u2032\u2035\uff07", "'"
        ),
        **dict.fromkeys("\u00ab\u00bb\u201c\u201d\u201e\u201f\u2033\u2036\uff02", '"'),
        "\u2044": "/",
        "\u2120": " ",  # marks behind a name are no letters of it
        "\u2122": " ",
    }
)
_SUPERSCRIPT = re.compile(
    "(?<=[^\\s^\u00b2\u00b3\u00b9\u2070\u2074-\u207f])(?=[\u00b2\u00b3\u00b9\u2070\u2074-\u207f])"
)
_SYMBOL = re.compile(
    "[\u00bc-\u00be\u2100-\u215f\u2189\u2460-\u24ff\u3200-\u33ff\U0001f100-\U0001f1ff]"
)
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_ACCENT = re.compile(
    "(?<!\u0438)\u0306"  # of Cyrillic й it is a part of the letter
    "|[\u0300-\u0305\u0307-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20ff\ufe20-\ufe2f]"
)
_LETTERS = str.maketrans(
    {
        "\u00e6": "ae", "\u0153": "oe", "\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d",
        "\u00fe": "th", "\u0127": "h", "\u0131": "i", "\u0167": "t", "\u014b": "n",
    }
)  # fmt: skip
_COMPOUND = re.compile(r"[^\W_]+(?:(?:[-^]|-[ \t]*\r?\n[ \t]*)[^\W_]+)+")
_JOINT = re.compile(r"[-^\s]+")
_MAX_PARTS = 8
_MAX_JOINED = 64


def plain_form(text: str) -> str:
    """The text with one spelling for each character. Cost: nothing for ASCII."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).translate(_SAME)
    text = _SYMBOL.sub(_spaced_symbol, _SUPERSCRIPT.sub("^", text))
    text = unicodedata.normalize("NFKC", text).translate(_SAME)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def folded_form(text: str) -> str:
    """The plain form in lower case, without accents."""
    text = plain_form(text).casefold()
    if text.isascii():
        return text
    text = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", text).translate(_LETTERS)


def search_form(text: str) -> str:
    """The folded form, and behind it what its compounds are when they are written as one word."""
    text = folded_form(text)
    joined = dict.fromkeys(word for _, word in joined_words(text))
    return f"{text}\n{' '.join(joined)}" if joined else text


def joined_words(folded: str) -> Iterator[tuple[list[str], str]]:
    """The parts of each compound of a folded text, and of its neighbouring parts, and both as one word."""
    for compound in _COMPOUND.finditer(folded):
        parts = _JOINT.split(compound[0])
        if len(parts) > _MAX_PARTS or len(compound[0]) > _MAX_JOINED:
            continue
        yield parts, "".join(parts)
        if len(parts) > 2:
            for at in range(len(parts) - 1):
                yield parts[at : at + 2], "".join(parts[at : at + 2])


def _spaced_symbol(found: re.Match[str]) -> str:
    """A symbol that stands for several characters, apart from the words around it."""
    is_letter = unicodedata.category(found[0])[0] == "L" or unicodedata.category(found[0]) == "Nl"
    return found[0] if is_letter else f" {found[0]} "
