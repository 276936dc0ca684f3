"""The default title of a conversation, derived from its first message.

A model could write one; the demo model's are worse than the message's first sentence
(docs/notebook/2026-11-24-titles.md).
"""

import re
import unicodedata

_LENGTH = 60
_SHORT = 15
"""After a shorter sentence the next one follows: it may have ended in an abbreviation, as in `Who was Dr.`"""
_READ = 4096
"""Characters of the message that are read: a log pasted into it may have millions."""
UNTITLED = "New conversation"
"""The title before the first message."""
_JOINERS = "\u200d\ufe0e\ufe0f"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_REGIONAL_INDICATORS = range(0x1F1E6, 0x1F200)

_FENCED = re.compile(
    r"(?:(?<=\n\n)[^\n]{1,200}\.\w{1,8}(?: \(\d+ pages?\))?:\n)?"
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(?:.*?^ {0,3}\1[`~]*[ \t]*$|.*)",
    re.M | re.S,
)
"""A fenced block, closed or not: code, or the text of an attached file with its name."""
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*$", re.M)
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?![a-z0-9])|(?<=[。！？])|\n\s*")
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+)+")
_GREETING = re.compile(
    r"(?:hi|hey|hello|greetings|good (?:morning|afternoon|evening))\b"
    r"(?:\s+(?:there|all|everyone|again))?(?:\s*[,.!:;–-]+\s*|\s*$|"
    r"\s+(?=(?:can|could|would|please|what|how|why|i|i'm)\b))",
    re.I,
)
_THANKS = re.compile(r"(?:thanks|thank you|thx)\b[^?]*$", re.I)
_REQUEST = re.compile(r"(?:(?:can|could|would|will) you(?: please)?|please)[\s,]+", re.I)


def default_title(message: str) -> str:
    """The first sentence of a message that says something, as a title.

    Left out: greetings, thanks, `could you please`, fenced code and the contents of attached files. A
    message of nothing else is its own title.
    """
    message = message[:_READ]
    prose = _FENCED.sub("\n", message)
    for text in (prose, _FENCE.sub("", message)):
        sentence = _first_sentence(text)
        if sentence:
            return title_of(sentence)
    return title_of(message)


def title_of(text: str) -> str:
    """One line of at most 60 characters, truncated between words if possible."""
    line = " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())
    if not line:
        return UNTITLED
    if len(line) <= _LENGTH:
        return line
    cut = line.rfind(" ", _LENGTH // 2, _LENGTH)
    if cut < 0:
        cut = _LENGTH - 1
        while cut > 1 and _joins(line, cut):
            cut -= 1
    return line[:cut].rstrip() + "…"


def _first_sentence(text: str) -> str:
    """The first sentence after greetings and thanks; empty if there is none."""
    chosen = ""
    for part in _SENTENCE_END.split(text):
        sentence = _without_courtesy(_MARKUP.sub("", part).strip())
        if not any(c.isalnum() for c in sentence):
            continue
        chosen = f"{chosen} {sentence}".strip()
        if len(chosen) >= _SHORT or chosen[-1] in "。！？":
            break
    return chosen if chosen.endswith("...") else chosen.rstrip(".:")


def _without_courtesy(sentence: str) -> str:
    rest = _GREETING.sub("", sentence, count=1) if _GREETING.match(sentence) else sentence
    if _THANKS.match(rest):
        return ""
    request = _REQUEST.match(rest)
    if request is not None:  # it is no question any more
        rest = rest[request.end() :].rstrip("?")
    return rest if rest == sentence else rest[:1].upper() + rest[1:]


def _joins(line: str, at: int) -> bool:
    """Whether a cut before character `at` would split a grapheme: marks, joined emoji, flags."""
    here, before = line[at], line[at - 1]
    if ord(here) in _REGIONAL_INDICATORS:  # two of them make a flag
        run = 0
        while run < at and ord(line[at - 1 - run]) in _REGIONAL_INDICATORS:
            run += 1
        return run % 2 == 1
    return (
        unicodedata.category(here).startswith("M")
        or here in _JOINERS
        or before in _JOINERS
        or ord(here) in _SKIN_TONES
    )
