"""`Matcher`: the state of one sequence in its grammar.

The library reports errors by a flag, which stays set, instead of raising them. The flag is checked
after every call, and the first error is kept as a sentence. A failed matcher allows no token, so only
its own request finishes with an error.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from engine.grammar.source import one_sentence

if TYPE_CHECKING:
    from llguidance import LLMatcher

_LIMIT = re.compile(r"max is|limit|too many", re.IGNORECASE)
"""Matches the library's messages about its limits; its stop reason does not always name them."""


def mask_words(vocab_size: int) -> int:
    """Number of uint32 words of a token mask, which has one bit per token."""
    return -(-vocab_size // 32)


class Matcher:
    """A matcher of one sequence. Not thread-safe.

    Attributes:
        mask_words: number of uint32 words of its mask.
        library: the library's matcher, used to compute several masks in one call.
        error: why it failed, as one sentence, or None.
    """

    __slots__ = ("error", "library", "mask_words")

    def __init__(self, library: "LLMatcher", *, mask_words: int) -> None:
        self.library = library
        self.mask_words = mask_words
        self.error: str | None = None
        self.check()

    @property
    def is_free(self) -> bool:
        """Whether every token is allowed next; a grammar always decides."""
        return False

    @property
    def forced(self) -> int | None:
        """The only token that is allowed next, known without a mask; always None here."""
        return None

    @property
    def also_allowed(self) -> int | None:
        """A token that is allowed beside those of the mask; always None here."""
        return None

    @property
    def masking(self) -> Self:
        """The matcher that computes the mask."""
        return self

    @property
    def finished(self) -> bool:
        """Whether the grammar allows no further token after a complete answer."""
        return self.error is None and self.library.is_stopped()

    @property
    def accepting(self) -> bool:
        """Whether the tokens so far are a complete answer."""
        return self.error is None and self.library.is_accepting()

    def consume(self, tokens: Sequence[int]) -> bool:
        """Advance by tokens of the answer; False if the grammar does not allow them."""
        self.library.consume_tokens(list(tokens))
        return self.check()

    def advance(self, token: int) -> bool:
        """Advance by one token; False if the grammar does not allow it."""
        self.library.consume_token(token)
        return self.check()

    def copy(self) -> Self:
        """An independent matcher in the same state."""
        return type(self)(self.library.deep_copy(), mask_words=self.mask_words)

    def check(self) -> bool:
        """Read the library's error flag; False if the matcher has failed."""
        if self.error is None and self.library.is_error():
            self.error = self._sentence()
        return self.error is None

    def _sentence(self) -> str:
        reason = one_sentence(self.library.get_error()).rstrip(".")
        if _LIMIT.search(reason):
            return (
                "The grammar is too costly to follow at this point of the answer; make it simpler."
            )
        return f"The grammar could not be followed ({reason})."
