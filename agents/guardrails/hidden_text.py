"""Characters that a person does not see and a model reads.

Tags, zero-width characters, bidirectional controls and variation selectors. Sources: Unicode TR 36 and UTS 39
(security), CVE-2021-42574 (bidirectional overrides in source code). Emoji
sequences, joiners inside of Arabic and Indic words and single variation selectors are ordinary text.
"""

from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, Validate, accept, recognizer

_MAX = 4096
_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\u180e\ufeff\ufff9\ufffa\ufffb"
_JOINERS = "\u200c\u200d"
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_BLACK_FLAG = "\U0001f3f4"


def hidden_text() -> tuple[Recognizer, ...]:
    """The recognizers. A detection's text is the hidden characters only."""
    return (
        _run("tag_characters", f"[{_TAGS}]", least=1, validate=_not_a_flag),
        _run("zero_width", f"[{_ZERO_WIDTH}]", least=1, validate=_not_a_joiner),
        _run("bidi_control", f"[{_BIDI}]", least=1),
        _run("variation_selectors", f"[{_SELECTORS}]", least=2),
    )


def _run(name: str, alphabet: str, *, least: int, validate: Validate = accept) -> Recognizer:
    return recognizer(
        Kind.HIDDEN_TEXT,
        name,
        f"{alphabet}{{{least},{_MAX}}}",
        alphabet=alphabet,
        max_chars=_MAX,
        validate=validate,
        opening=alphabet,
    )


def _not_a_flag(text: str, start: int, end: int) -> tuple[int, int] | None:
    """A black flag, up to six tags and the cancel tag are the flag of a region, such as Scotland."""
    first = start
    while first and start - first < 7 and "\U000e0000" <= text[first - 1] <= "\U000e007f":
        first -= 1
    flag = first > 0 and text[first - 1] == _BLACK_FLAG
    return None if flag and end - first <= 7 and text[end - 1] == "\U000e007f" else (start, end)


def _not_a_joiner(text: str, start: int, end: int) -> tuple[int, int] | None:
    if end - start == 1:
        if text[start] in _JOINERS and start and ord(text[start - 1]) > 0x2FF:
            return None
        if text[start] == "\ufeff" and start == 0:  # a byte-order mark
            return None
    return start, end
