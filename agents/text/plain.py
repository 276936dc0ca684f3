"""Untrusted text without what a person does not see: control characters, bidirectional controls, tags.

`plain` removes them, for what a model reads; `visible` spells them out, for what a person is asked to
approve. Newlines and tabs stay. Both are one pass over the text.
"""

import re
import unicodedata

_SEQUENCE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f"
    "\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")


def plain(text: str) -> str:
    """The text without invisible and private-use characters and colour sequences; line ends are LF."""
    return _SUSPECT.sub("", _LINE_ENDS.sub("\n", _SEQUENCE.sub("", text)))


def plain_line(text: str, limit: int) -> str:
    """`plain` on one line of at most `limit` characters; a cut is marked."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def visible(text: str) -> str:
    """The text with each invisible character as `⟨U+200B⟩`; line ends are LF."""
    return _SUSPECT.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    character = match[0]
    # A narrow space is a space to the reader as well.
    if unicodedata.category(character) == "Zs":
        return " "
    return f"⟨U+{ord(character):04X}⟩"
