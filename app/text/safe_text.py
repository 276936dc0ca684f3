r"""Removes control sequences from untrusted text before it reaches a terminal.

Text from models, tools, files and documents is untrusted. Neither `Static(markup=False)` nor
`Markdown` removes escape sequences, so that an answer with `ESC ] 52` would write the clipboard.
Every string that is not from our own source passes through `safe_text`, or through `SafeStream` if it
arrives in pieces.

Removed: CSI, OSC, DCS, APC, PM and SOS sequences in their 7-bit and 8-bit forms, finished or not, and
every other control character but newline and tab. Kept visible: bidi overrides, as `⟨U+202E⟩`.
Cost: one regular-expression pass, O(n), no backtracking (each alternative consumes what it tests).
"""

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    # OSC, DCS, SOS, PM, APC: the body ends at BEL, ST, the next ESC or the end of the line, so that
    # an unfinished one can hide at most one line of an answer.
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"  # every other escape, among them ESC c (reset) and a lone ESC
)
_COMPLETE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|.*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ`-~\\]", re.DOTALL
)
_NEWLINES = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")

HOLD_LIMIT = 4096
"""Maximum length of an unfinished sequence that is held back; a longer one is dropped."""


def safe_text(text: str) -> str:
    """`text` without control sequences and control characters; newlines and tabs are kept."""
    text = _SEQUENCE.sub("", text)
    text = _NEWLINES.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _BIDI.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def safe_line(text: str) -> str:
    """`safe_text` on one line: each run of white space becomes one space."""
    return " ".join(safe_text(text).split())


class SafeStream:
    """`safe_text` for text that arrives in pieces, in which a sequence may be split.

    The concatenated results of `feed` and `flush` equal `safe_text` of the whole text, except for
    unfinished sequences longer than `HOLD_LIMIT`.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text to show now; an unfinished sequence or a final carriage return is held back."""
        text = self._held + piece
        cut = _unfinished(text)
        if len(text) - cut > HOLD_LIMIT:
            cut = len(text)
        shown = _SEQUENCE.sub("", text[:cut])
        self._held = text[cut:]
        # `safe_text` joins CR and LF across the sequences between them, and the LF may come later.
        if shown.endswith("\r"):
            shown, self._held = shown[:-1], "\r" + self._held
        return safe_text(shown)

    def flush(self) -> str:
        """The text held back, made safe; the stream can be fed again afterwards."""
        held, self._held = self._held, ""
        return safe_text(held)


def _unfinished(text: str) -> int:
    """Offset of an unfinished sequence at the end, or the length of the text."""
    for match in _SEQUENCE.finditer(text):
        if match.end() == len(text) and not _COMPLETE.fullmatch(match[0]):
            return match.start()
        # `ESC` may be the first half of the `ESC \` that would have ended the body before it.
        if text[match.end() :] == "\x1b":
            return match.start()
    return len(text)
