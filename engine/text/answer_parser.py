"""`AnswerParser`: divides the text of an answer, as it arrives, into its parts."""

from collections.abc import Sequence
from typing import Protocol

from engine.api.answer_parts import AnswerPart, AnswerText


class AnswerParser(Protocol):
    """The parser of one answer; feed it the pieces of the text in their order, then finish it."""

    @property
    def ended(self) -> bool:
        """Whether the answer is complete, although the model may go on; what follows is left out."""
        ...

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        ...

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back; call it once, at the end of the answer.

        Args:
            cut: whether a limit ended the answer, not the model: what is incomplete stays so.
        """
        ...


class PlainText:
    """The parser of answers that are text only."""

    ended = False

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The text itself."""
        return [AnswerText(text)] if text else []

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """Nothing: no text is held back."""
        return []
