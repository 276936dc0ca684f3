"""`AnswerParser`: divides the text of an answer, as it arrives, into its parts."""

from collections.abc import Sequence
from typing import Protocol

from engine.api.answer_parts import AnswerPart, AnswerText


class AnswerParser(Protocol):
    """The parser of one answer; feed it the pieces of the text in their order, then finish it."""

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        ...

    def finish(self) -> Sequence[AnswerPart]:
        """The parts that were held back; call it once, at the end of the answer."""
        ...


class PlainText:
    """The parser of answers that are text only."""

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The text itself."""
        return [AnswerText(text)] if text else []

    def finish(self) -> Sequence[AnswerPart]:
        """Nothing: no text is held back."""
        return []
