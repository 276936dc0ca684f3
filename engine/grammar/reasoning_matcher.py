"""`ReasoningMatcher`: the state of one sequence that may reason before its answer.

Until the closing tokens the model is free; after them the answer follows its grammar, if it has one. At the
end of the budget, and when it is asked to, the matcher forces the closing tokens one after the other.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Self

from engine.api.reasoning import ReasoningControl
from engine.grammar.matcher import Matcher


class _Stage(Enum):
    START = "nothing was written; the opening tokens may come, or the answer"
    OPENING = "the first of several opening tokens was written"
    REASONING = "any token may come"
    CLOSING = "the closing tokens are forced"
    SEPARATING = "the tokens before a constrained answer are forced"
    ANSWER = "the answer is written"


class ReasoningMatcher:
    """A matcher of one sequence; not thread-safe, but `close` may be called between two steps.

    Attributes:
        mask_words: number of uint32 words of a mask.
    """

    __slots__ = ("_answer", "_at", "_control", "_count", "_recent", "_stage", "mask_words")

    def __init__(
        self, control: ReasoningControl, answer: Matcher | None, *, mask_words: int
    ) -> None:
        """Begin before the first token.

        Args:
            control: the markers and the budget.
            answer: of the answer's grammar, in its initial state; None for a free answer.
            mask_words: number of uint32 words of a mask.
        """
        self.mask_words = mask_words
        self._control = control
        self._answer = answer
        self._stage = _Stage.START
        self._at = 0  # tokens of the marker that is being written
        self._count = 0
        self._recent: deque[int] = deque(maxlen=len(control.closing_ids))
        if not control.opening_ids:
            self._reason()

    @property
    def is_free(self) -> bool:
        """Whether every token is allowed next."""
        return (self._answer is None and self.forced is None) or self._stage is _Stage.REASONING

    @property
    def forced(self) -> int | None:
        """The only token that is allowed next; None if there are others, or the grammar decides."""
        match self._stage:
            case _Stage.OPENING:
                return self._control.opening_ids[self._at]
            case _Stage.CLOSING:
                return self._control.closing_ids[self._at]
            case _Stage.SEPARATING:
                return self._control.answer_ids[self._at]
            case _:
                return None

    @property
    def also_allowed(self) -> int | None:
        """A token that is allowed beside those of the grammar."""
        return self._control.opening_ids[0] if self._stage is _Stage.START else None

    @property
    def masking(self) -> Matcher | None:
        """The matcher of the grammar, where it decides."""
        return self._answer if self._stage in (_Stage.START, _Stage.ANSWER) else None

    @property
    def error(self) -> str | None:
        """Why it failed, as one sentence, or None."""
        return None if self._answer is None else self._answer.error

    @property
    def finished(self) -> bool:
        """Whether the grammar allows no further token after a complete answer."""
        return self._answer is not None and self._stage is _Stage.ANSWER and self._answer.finished

    def check(self) -> bool:
        """False if the grammar has failed."""
        return self._answer is None or self._answer.check()

    def close(self) -> bool:
        """End the reasoning from the next token on; False if the model does not reason now."""
        if self._stage is not _Stage.REASONING:
            return False
        self._force_closing()
        return True

    def consume(self, tokens: Sequence[int]) -> bool:
        """Advance by tokens of the answer; False if the grammar does not allow them."""
        return all(self.advance(token) for token in tokens)

    def advance(self, token: int) -> bool:
        """Advance by one token; False if the grammar does not allow it."""
        match self._stage:
            case _Stage.START:
                return self._begin(token)
            case _Stage.OPENING:
                self._next_of(self._control.opening_ids, self._reason)
            case _Stage.REASONING:
                self._count += 1
                self._recent.append(token)
                if tuple(self._recent) == self._control.closing_ids:
                    self._answering()
                elif self._is_spent:
                    self._force_closing()
            case _Stage.CLOSING:
                self._next_of(self._control.closing_ids, self._answering)
            case _Stage.SEPARATING:
                self._next_of(self._control.answer_ids, self._answer_begins)
            case _Stage.ANSWER:
                return self._answer is None or self._answer.advance(token)
        return True

    def copy(self) -> Self:
        """An independent matcher in the same state."""
        answer = None if self._answer is None else self._answer.copy()
        copy = type(self)(self._control, answer, mask_words=self.mask_words)
        copy._stage, copy._at, copy._count = self._stage, self._at, self._count
        copy._recent = self._recent.copy()
        return copy

    @property
    def _is_spent(self) -> bool:
        limit = self._control.max_tokens
        return limit is not None and self._count >= limit

    def _begin(self, token: int) -> bool:
        if token == self._control.opening_ids[0]:
            self._next_of(self._control.opening_ids, self._reason)
            if self._stage is _Stage.START:
                self._stage = _Stage.OPENING
            return True
        self._answer_begins()
        return self.advance(token)

    def _next_of(self, marker: tuple[int, ...], then: Callable[[], None]) -> None:
        self._at += 1
        if self._at == len(marker):
            then()

    def _reason(self) -> None:
        self._stage, self._at = _Stage.REASONING, 0
        if self._is_spent:
            self._force_closing()

    def _force_closing(self) -> None:
        self._stage, self._at = _Stage.CLOSING, 0

    def _answering(self) -> None:
        self._at = 0
        separates = self._answer is not None and self._control.answer_ids
        self._stage = _Stage.SEPARATING if separates else _Stage.ANSWER

    def _answer_begins(self) -> None:
        self._stage, self._at = _Stage.ANSWER, 0
