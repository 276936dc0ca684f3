r"""Text from models, tools, files and documents is hostile: this is the one gate before the screen.

Neither `Static(markup=False)` nor `Markdown` removes escape sequences, so an answer holding
`ESC ] 52` would reach the terminal and write its clipboard. Every string that did not come from our
own source passes through `safe_text` (or `SafeStream`, when it arrives in pieces).

Removed: CSI, OSC, DCS, APC, PM and SOS sequences in their 7-bit and 8-bit forms, finished or not, and
every other control character but newline and tab. Kept visible: bidi overrides, as `⟨U+202E⟩`.
Cost: one regular-expression pass, O(n), no backtracking (each alternative consumes what it tests).
"""

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    # OSC, DCS, SOS, PM, APC: the body ends at BEL, ST, the next ESC or the end of the line, so that
    # an unfinished one can hide a line, never the rest of an answer.
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
"""Characters an unfinished sequence may hold back before it is dropped as it stands."""


def safe_text(text: str) -> str:
    """`text` with everything removed that a terminal could obey; newlines and tabs stay."""
    text = _SEQUENCE.sub("", text)
    text = _NEWLINES.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _BIDI.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def safe_line(text: str) -> str:
    """`safe_text` on one line: each run of white space becomes one space."""
    return " ".join(safe_text(text).split())


class SafeStream:
    """`safe_text` for text that arrives in pieces: no sequence slips through a seam.

    The pieces fed and flushed, joined, equal `safe_text` of the whole (unfinished sequences longer
    than `HOLD_LIMIT` excepted).
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be shown now; an unfinished sequence or a carriage return at the end is held back."""
        text = self._held + piece
        cut = _unfinished(text)
        if len(text) - cut > HOLD_LIMIT:
            cut = len(text)
        shown = _SEQUENCE.sub("", text[:cut])
        self._held = text[cut:]
        # `safe_text` joins CR and LF over the sequences between them, and the LF may be still to come.
        if shown.endswith("\r"):
            shown, self._held = shown[:-1], "\r" + self._held
        return safe_text(shown)

    def flush(self) -> str:
        """What was held back, made safe; the stream can be fed again afterwards."""
        held, self._held = self._held, ""
        return safe_text(held)


def _unfinished(text: str) -> int:
    """Where an unfinished sequence at the end begins, else the length."""
    for match in _SEQUENCE.finditer(text):
        if match.end() == len(text) and not _COMPLETE.fullmatch(match[0]):
            return match.start()
        # `ESC` may be the first half of the `ESC \` that would have ended the body before it.
        if text[match.end() :] == "\x1b":
            return match.start()
    return len(text)
