"""`ReasoningReader`: divides the text of an answer on the screen into its reasoning and what follows it."""

from collections.abc import Iterable

from engine.api.answer_parts import AnswerPart, AnswerReasoning, AnswerText
from engine.text.answer_parser import PlainText
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.reasoning_parser import ReasoningParser
from engine.text.reasoning_tokens import ReasoningTokens


class ReasoningReader:
    """Reads one answer.

    Attributes:
        reasoning: the text of the reasoning so far.
        text: the text after it so far.
    """

    def __init__(
        self,
        markers: ReasoningMarkers,
        opening_ids: tuple[int, ...],
        closing_ids: tuple[int, ...],
        *,
        begun: bool,
    ) -> None:
        """Read an answer.

        Args:
            markers: of the model.
            opening_ids: the opening marker as tokens.
            closing_ids: the closing one.
            begun: whether the prompt has begun the reasoning.
        """
        self.reasoning = ""
        self.text = ""
        self._parser = ReasoningParser(markers, PlainText(), begun=begun)
        self._tokens = ReasoningTokens(opening_ids, closing_ids, begun=begun)

    @property
    def count(self) -> int:
        """Tokens of the reasoning so far, its markers included."""
        return self._tokens.count

    @property
    def reasons(self) -> bool:
        """Whether there is reasoning and no text after it yet."""
        return self.count > 0 and not self.text

    def feed(self, text: str, token_ids: Iterable[int], *, finished: bool = False) -> str:
        """The text after the reasoning that is certain now; `finished` brings what was held back."""
        self._tokens.feed(token_ids)
        answered = self._read(self._parser.feed(text))
        if finished:
            answered += self._read(self._parser.finish())
        self.text += answered
        return answered

    def _read(self, parts: Iterable[AnswerPart]) -> str:
        answered = ""
        for part in parts:
            match part:
                case AnswerReasoning(text):
                    self.reasoning += text
                case AnswerText(text):
                    answered += text
        return answered
