"""`readable_text`: text of a document as a model may read it.

Documents are untrusted. What has no meaning as text is removed, so that it neither reaches a terminal
through an answer nor hides an instruction: escape sequences, control characters, direction overrides,
zero-width and tag characters. Spellings of control tokens stay: `ChatEncoder` encodes them as ordinary text.
"""

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_NEWLINES = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_FAKE_CITATION = re.compile(r"(?<![\w)\]])\[(\d{1,3})\](?!\()")
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def readable_text(text: str) -> str:
    """`text` without escape sequences and hidden characters, its line ends as newlines."""
    text = _ESCAPES.sub("", text)
    text = _NEWLINES.sub("\n", text)
    return _HIDDEN.sub("", text)


def quoted_text(text: str) -> str:
    """`readable_text` for a prompt: without empty lines, and with `[7]` written as `(7)`.

    A document's own footnote marks would look like the numbers of passages. Subscripts (`argv[1]`) stay.
    """
    text = _FAKE_CITATION.sub(r"(\1)", readable_text(text))
    return _EMPTY_LINES.sub("\n", text).strip("\n")
