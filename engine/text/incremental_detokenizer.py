"""`IncrementalDetokenizer`: detokenizes a sequence as its token ids arrive.

Invariant: the results of all `feed` calls plus `flush` equal `Tokenizer.decode` of the same ids,
however they are grouped into calls. Cost: O(bytes of the new ids).
"""

import codecs
import unicodedata
from collections.abc import Container, Iterable

from engine.text.token_bytes import TokenBytes

_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA_CLASS = 9  # canonical combining class of signs that join Indic consonants
_MAX_HELD = 32
"""Maximum number of characters held back; longer runs of joiners are not graphemes."""


class IncrementalDetokenizer:
    """Incremental detokenizer of one sequence.

    Incomplete UTF-8 characters are held back, and become U+FFFD only when they can no longer be
    completed. Graphemes that the next character is certain to extend are held back too: those that
    end in a zero-width joiner, a virama or an unpaired regional indicator. A combining mark after a
    complete letter cannot be predicted and is returned separately.
    """

    def __init__(
        self, table: TokenBytes, *, hidden: Container[int], strip_leading_space: bool
    ) -> None:
        """Skip ids in `hidden`; with `strip_leading_space`, drop one space at the start of the text."""
        self._table = table
        self._hidden = hidden
        self._strip = strip_leading_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, token_ids: Iterable[int]) -> str:
        """The text that the ids complete; may be empty."""
        table, hidden = self._table, self._hidden
        raw = b"".join([table[token_id] for token_id in token_ids if token_id not in hidden])
        if not raw:
            return ""
        if self._strip:
            self._strip = False
            raw = raw.removeprefix(b" ")
        text = self._held + self._decoder.decode(raw)
        cut = _open_cluster_start(text)
        self._held = text[cut:]
        return text[:cut]

    def spelling(self, token_id: int) -> str:
        """The text of a control token that is left out; empty for any other token."""
        if token_id not in self._hidden:
            return ""
        return self._table[token_id].decode(errors="replace")

    def flush(self) -> str:
        """The remaining text at the end of the sequence; an incomplete character becomes U+FFFD."""
        text = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return text


def _open_cluster_start(text: str) -> int:
    """Start of the last grapheme if the next character is certain to extend it; else the length."""
    end = len(text)
    if not text or text[-1] < "\u0300":  # no character below the combining marks joins the next one
        return end
    if _is_regional(text[-1]):
        run = 0
        while run < min(end, _MAX_HELD) and _is_regional(text[end - 1 - run]):
            run += 1
        return end - run % 2 if run < _MAX_HELD else end
    if not _binds_next(text[-1]):
        return end
    start = end - 1
    while start > 0 and end - start <= _MAX_HELD and _continues(text[start - 1], text[start]):
        start -= 1
    return start if end - start <= _MAX_HELD else end


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _binds_next(character: str) -> bool:
    return character == _ZERO_WIDTH_JOINER or unicodedata.combining(character) == _VIRAMA_CLASS


def _continues(previous: str, character: str) -> bool:
    """Whether `character` belongs to the same grapheme as the one before it."""
    return (
        _binds_next(character)
        or _binds_next(previous)
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
    )
