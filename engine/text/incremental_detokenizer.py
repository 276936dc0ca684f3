"""Token ids in, whole characters out: detokenisation while the ids still arrive.

Invariant: all that `feed` returned plus `flush` is exactly `Tokenizer.decode` of the same ids, for
every way of cutting them into feeds. Cost: O(bytes of the new ids).
"""

import codecs
import unicodedata
from collections.abc import Container, Iterable

from engine.text.token_bytes import TokenBytes

_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA_CLASS = 9  # canonical combining class of the signs that bind Indic consonants
_MAX_HELD = 32
"""Characters a cluster may hold back: longer runs of joiners are noise, not a grapheme."""


class IncrementalDetokenizer:
    """Incremental decoder of one sequence.

    Never returns half a UTF-8 character: incomplete bytes wait for the rest, and turn into U+FFFD
    only when they can no longer become a character. Never returns a grapheme that is certain to
    go on either: text that ends in a zero-width joiner, a virama after a consonant or an unpaired
    regional indicator waits. A mark that follows a letter which is complete by itself cannot be
    foreseen and comes later.
    """

    def __init__(
        self, table: TokenBytes, *, hidden: Container[int], strip_leading_space: bool
    ) -> None:
        """Skip ids in `hidden`; drop one space at the very start with `strip_leading_space`."""
        self._table = table
        self._hidden = hidden
        self._strip = strip_leading_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, token_ids: Iterable[int]) -> str:
        """The text that the ids complete; often empty."""
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

    def flush(self) -> str:
        """The rest, at the end of the sequence: an incomplete character becomes U+FFFD."""
        text = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return text


def _open_cluster_start(text: str) -> int:
    """Where the trailing grapheme starts that the next character is sure to join; else len."""
    end = len(text)
    if not text or text[-1] < "\u0300":  # nothing below the combining marks binds what follows
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
