"""`Matcher`: how far one answer has come in its grammar.

The library reports errors instead of raising them, and stays broken afterwards; here every call is
followed by a look, and the first error is kept as a sentence. A broken matcher allows nothing, so
its request ends, and no other.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from engine.grammar.source import one_sentence

if TYPE_CHECKING:
    from llguidance import LLMatcher

_LIMIT = re.compile(r"max is|limit|too many", re.IGNORECASE)
"""How the library words that one of its limits was reached; its stop reason does not always tell."""


def mask_words(vocab_size: int) -> int:
    """Words of one token mask: a bit a token."""
    return -(-vocab_size // 32)


class Matcher:
    """The state of one sequence. One thread at a time.

    Attributes:
        mask_words: uint32 words of one of its masks.
        library: the library's matcher, for masks computed many at a time.
        error: why it is broken, in one sentence, or None.
    """

    __slots__ = ("error", "library", "mask_words")

    def __init__(self, library: "LLMatcher", *, mask_words: int) -> None:
        self.library = library
        self.mask_words = mask_words
        self.error: str | None = None
        self.look()

    @property
    def finished(self) -> bool:
        """Whether the answer is complete and nothing could follow it."""
        return self.error is None and self.library.is_stopped()

    @property
    def accepting(self) -> bool:
        """Whether the answer could end here."""
        return self.error is None and self.library.is_accepting()

    def consume(self, tokens: Sequence[int]) -> bool:
        """Go on by the answer's next tokens; False if the grammar has no such text."""
        self.library.consume_tokens(list(tokens))
        return self.look()

    def rollback(self, count: int) -> bool:
        """Take the last `count` tokens back, as after a draft that was not accepted."""
        self.library.rollback(count)
        return self.look()

    def copy(self) -> Self:
        """A matcher that goes its own way from here."""
        return type(self)(self.library.deep_copy(), mask_words=self.mask_words)

    def look(self) -> bool:
        """Whether the matcher is sound; keeps the error if it is not."""
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
