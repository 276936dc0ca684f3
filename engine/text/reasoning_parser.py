"""`ReasoningParser`: divides the reasoning from the text that follows it."""

from collections.abc import Sequence

from engine.api.answer_parts import AnswerPart, AnswerReasoning
from engine.text.answer_parser import AnswerParser
from engine.text.partial_marker import divided_before
from engine.text.reasoning_markers import ReasoningMarkers


class ReasoningParser:
    """The parser of one answer. The blank lines around the markers belong to neither part.

    An answer that ends before the closing marker is reasoning as a whole. Only at the beginning of the
    answer does the opening marker begin it.
    """

    def __init__(self, markers: ReasoningMarkers, rest: AnswerParser, *, begun: bool) -> None:
        """Parse an answer.

        Args:
            markers: of the model.
            rest: parses the text after the reasoning.
            begun: whether the prompt has begun the reasoning.
        """
        self._markers = markers
        self._rest = rest
        self._held = ""
        self._stage = self._reasoning if begun else self._start
        self._is_first = True  # nothing of the present part was passed on
        self._reasoned = begun

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        self._held += text
        parts: list[AnswerPart] = []
        stage = None
        while stage is not self._stage:  # a stage that ends leaves the rest to the next one
            stage = self._stage
            parts += stage()
        return parts

    @property
    def ended(self) -> bool:
        """Whether the rest of the answer is not to be read."""
        return self._rest.ended

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        held, self._held = self._held, ""
        if self._stage == self._reasoning:
            held = held.rstrip()
            return [AnswerReasoning(held)] if held else []
        return [*self._rest.feed(held), *self._rest.finish(cut=cut)]

    def _start(self) -> list[AnswerPart]:
        written = self._held.lstrip()
        opening = self._markers.opening
        if written.startswith(opening):
            self._held = written[len(opening) :]
            self._stage = self._reasoning
            self._reasoned = True
        elif written and not opening.startswith(written):
            self._stage = self._answer
        return []

    def _reasoning(self) -> list[AnswerPart]:
        if self._is_first:
            self._held = self._held.lstrip()
        closing = self._markers.closing
        at = self._held.find(closing)
        if at >= 0:
            thought, self._held = self._held[:at].rstrip(), self._held[at + len(closing) :]
            self._stage, self._is_first = self._answer, True
        else:
            thought, self._held = divided_before(self._held, closing)
            self._is_first = self._is_first and not thought
        return [AnswerReasoning(thought)] if thought else []

    def _answer(self) -> list[AnswerPart]:
        if self._is_first and self._reasoned:
            self._held = self._held.lstrip()
        text, self._held = self._held, ""
        if not text:
            return []
        self._is_first = False
        return [*self._rest.feed(text)]
