"""`SequenceBreakers`: strings that end a repetition of the DRY penalty, compiled for a vocabulary.

As in llama.cpp, a breaker is found in tokens, not in text. A token that contains the string is a breaker.
A token that ends with the string's first characters is one if the tokens of the rest follow: this is how
strings longer than a token are found, in one tokenization of the rest only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MAX_BREAKER_TAIL = 20
"""Maximum number of tokens of a pattern after its head."""

_CACHED = 16


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBreakers:
    """Patterns of tokens: any token of a set, the head, followed by the tokens of a tail.

    Attributes:
        heads: [P, words] uint32; bit `id % 32` of word `id // 32` is 1 if token `id` is a head.
        tails: [P, `MAX_BREAKER_TAIL`] int32, padded with -1; longer tails are cut.
    """

    heads: NDArray[np.uint32]
    tails: NDArray[np.int32]


class Vocabulary(Protocol):
    """The part of a tokenizer that is needed here."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token."""
        ...

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text."""
        ...


class BreakerCompiler:
    """Compiles sequence breakers of one model; the latest are cached. Any thread.

    Cost: 20 to 60 ms for the first call, which reads the vocabulary, then about 1 ms per string.
    """

    def __init__(self, vocabulary: Vocabulary, vocab_size: int) -> None:
        self._vocabulary = vocabulary
        self._vocab_size = vocab_size
        self.compile = lru_cache(_CACHED)(self._compile)

    @cached_property
    def _joined(self) -> tuple[bytes, NDArray[np.int64]]:
        """The bytes of all tokens, and the end of each."""
        pieces = [self._vocabulary.token_bytes(one) for one in range(self._vocab_size)]
        return b"".join(pieces), np.cumsum([len(piece) for piece in pieces])

    def _compile(self, breakers: tuple[str, ...]) -> SequenceBreakers:
        """The patterns of strings; the same object for equal strings, while it is cached."""
        heads: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        for breaker in breakers:
            for tail, tokens in self._patterns(breaker.encode(errors="replace")):
                if tokens.any():
                    heads[tail] = heads[tail] | tokens if tail in heads else tokens
        tails = np.full((len(heads), MAX_BREAKER_TAIL), -1, np.int32)
        words = np.zeros((len(heads), -(-self._vocab_size // 32)), np.uint32)
        for at, (tail, tokens) in enumerate(heads.items()):
            tails[at, : len(tail)] = tail
            packed = np.packbits(tokens, bitorder="little")
            words[at].view(np.uint8)[: len(packed)] = packed
        return SequenceBreakers(words, tails)

    def _patterns(self, breaker: bytes) -> Iterator[tuple[tuple[int, ...], NDArray[np.bool_]]]:
        """Tail and heads, [vocab_size] bool, of each pattern of a string."""
        whole = self._tokens_with(breaker, at_end=False)
        yield (), whole
        for length in range(1, len(breaker)):
            try:
                rest = breaker[length:].decode()
            except UnicodeDecodeError:  # in the middle of a character
                continue
            tail = tuple(self._vocabulary.encode(rest)[:MAX_BREAKER_TAIL])
            yield tail, self._tokens_with(breaker[:length], at_end=True) & ~whole

    def _tokens_with(self, part: bytes, *, at_end: bool) -> NDArray[np.bool_]:
        """Which tokens contain `part`, or end with it: [vocab_size] bool."""
        joined, ends = self._joined
        starts = np.fromiter(_occurrences(joined, part), np.int64)
        tokens = np.searchsorted(ends, starts, side="right")
        stops = starts + len(part)
        inside = stops == ends[tokens] if at_end else stops <= ends[tokens]
        found = np.zeros(self._vocab_size, np.bool_)
        found[tokens[inside]] = True
        return found


def _occurrences(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
