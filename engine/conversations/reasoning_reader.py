"""`ReasoningReader`: divides the text of an answer on the screen into its reasoning and what follows it."""

from collections.abc import Iterable

from engine.api.answer_parts import AnswerPart, AnswerReasoning, AnswerText
from engine.text.model_reasoning import ModelReasoning
from engine.text.tool_calls.harmony_parser import MESSAGE


class ReasoningReader:
    """Reads one answer.

    Attributes:
        reasoning: the text of the reasoning so far.
        text: the text after it so far.
        finished: whether the whole answer was fed.
    """

    def __init__(self, reasoning: ModelReasoning, *, passes_all: bool = False) -> None:
        """Read an answer.

        Args:
            reasoning: of the model.
            passes_all: whether what follows divides the whole answer itself, as the parser of calls in
                Harmony does.
        """
        self.reasoning = ""
        self.text = ""
        self.finished = False
        self._markers = reasoning.markers
        self._passes_all = passes_all
        self._parser = reasoning.parser(reasoning.plain_parser())
        self._tokens = reasoning.tokens()

    @property
    def count(self) -> int:
        """Tokens of the reasoning so far, its markers included."""
        return self._tokens.count

    @property
    def reasons(self) -> bool:
        """Whether there is reasoning and no text after it yet."""
        return self.count > 0 and not self.text

    def feed(self, text: str, token_ids: Iterable[int], *, finished: bool = False) -> str:
        """What is to be read after it: the text that is certain now; `finished` brings what was held back."""
        self._tokens.feed(token_ids)
        answered = self._read(self._parser.feed(text))
        if finished:
            answered += self._read(self._parser.finish())
            self.finished = True
        self.text += answered
        return text if self._passes_all else answered

    def answer_at(self, written: str, *, calls: bool) -> int:
        """Where the answer begins after its reasoning.

        Args:
            written: the whole answer so far.
            calls: whether it calls tools: their messages are a part of the answer.
        """
        if not self._markers.is_message and not (self.count or self.reasoning):
            return 0
        if not self.text:
            return len(written)
        if not self._markers.is_message:
            if not any(self._markers.tags):
                return len(written) - len(self.text)
            end = written.find(self._markers.closing) + len(self._markers.closing)
            return len(written) - len(written[end:].lstrip())
        thought = written.rfind(self._markers.opening)
        if calls:
            end = written.find(self._markers.closing, max(0, thought))
            return 0 if thought < 0 or end < 0 else end + len(self._markers.closing)
        begin = written.rfind(MESSAGE)
        begin = 0 if begin < 0 else begin + len(MESSAGE)
        is_thought = thought >= 0 and begin == thought + len(self._markers.opening)
        return len(written) if is_thought else begin

    def _read(self, parts: Iterable[AnswerPart]) -> str:
        answered = ""
        for part in parts:
            match part:
                case AnswerReasoning(text):
                    self.reasoning += text
                case AnswerText(text):
                    answered += text
        return answered
