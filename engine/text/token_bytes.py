"""`TokenBytes`: the table of bytes per token, used by all detokenization.

The bytes of a token are computed on first use and cached, so a lookup is O(1) and start-up costs nothing.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

Scheme = Literal["byte-level", "sentencepiece"]
"""How pieces represent bytes: GPT-2's printable alphabet, or ▁ for space and `<0xNN>` for bytes."""

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> dict[str, int]:
    """GPT-2's bijection between 256 printable characters and the bytes (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + offset): byte for offset, byte in enumerate(rest)
    }


_ALPHABET = byte_alphabet()
_TO_LATIN1 = {ord(character): byte for character, byte in _ALPHABET.items()}
_LETTERS = frozenset(_ALPHABET)


def _byte_level(piece: str) -> bytes:
    if _LETTERS.issuperset(piece):
        return piece.translate(_TO_LATIN1).encode("latin-1")
    return piece.encode()


def _sentencepiece(piece: str) -> bytes:
    match = _BYTE_PIECE.fullmatch(piece)
    if match:
        return bytes.fromhex(match[1])
    return piece.replace("\u2581", " ").encode()


class TokenBytes:
    """Bytes of the token ids of a model.

    Attributes:
        size: ids are in [0, size). Unused ids (padding rows of the embedding) have no bytes.
    """

    def __init__(
        self,
        piece: Callable[[int], str | None],
        *,
        scheme: Scheme,
        literal: Mapping[int, str],
        size: int,
    ) -> None:
        """Read pieces by `piece`; ids in `literal` (added tokens) stand for that text."""
        self._piece = piece
        self._spell = _byte_level if scheme == "byte-level" else _sentencepiece
        self._known = {token_id: text.encode() for token_id, text in literal.items()}
        self.size = size

    def __getitem__(self, token_id: int) -> bytes:
        """The token's bytes; empty for an unused or invalid id."""
        known = self._known.get(token_id)
        if known is None:
            piece = self._piece(token_id) if 0 <= token_id < self.size else None
            known = b"" if piece is None else self._spell(piece)
            if 0 <= token_id < self.size:  # invalid ids must not grow the table
                self._known[token_id] = known
        return known
