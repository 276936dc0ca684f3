"""Adapter from a model's vocabulary to the grammar library's tokenizer."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class Vocabulary(Protocol):
    """The part of a tokenizer that the grammar library needs."""

    special_ids: frozenset[int]
    eos_ids: frozenset[int]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of text."""
        ...


def library_tokenizer(vocabulary: Vocabulary, vocab_size: int) -> "LLTokenizer":
    """The library's tokenizer, a prefix tree of the tokens. Takes about 0.2 s and holds the GIL.

    Masks allow no control tokens except end tokens, and no ids without bytes.
    """
    from llguidance import LLTokenizer

    wrapper = _Wrapper(vocabulary, vocab_size)
    return LLTokenizer(wrapper, eos_token=wrapper.eos_ids)  # type: ignore[arg-type]


class _Wrapper:
    """The attributes that the library reads from a tokenizer."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, vocab_size: int) -> None:
        self._vocabulary = vocabulary
        self.eos_ids = sorted(one for one in vocabulary.eos_ids if one < vocab_size)
        self.eos_token_id = self.eos_ids[0]
        special = vocabulary.special_ids | vocabulary.eos_ids
        self.special_token_ids = sorted(one for one in special if one < vocab_size)
        self.tokens = [vocabulary.token_bytes(one) for one in range(vocab_size)]

    def __call__(self, text: str) -> Iterable[int]:
        return self._vocabulary.encode(text)
