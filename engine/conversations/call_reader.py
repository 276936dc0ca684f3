"""`CallReader`: divides the text of an answer on the screen into what is shown and the calls of tools."""

from collections.abc import Iterable

from engine.api.answer_parts import AnswerPart, AnswerText, CallArguments, CallBegun
from engine.api.tools import ToolCall
from engine.text.answer_parser import AnswerParser


class CallReader:
    """Reads one answer.

    Attributes:
        text: what was shown so far.
    """

    def __init__(self, parser: AnswerParser) -> None:
        self.text = ""
        self._parser = parser
        self._begun: dict[int, CallBegun] = {}
        self._arguments: dict[int, str] = {}

    @property
    def calls(self) -> list[ToolCall]:
        """The calls so far, in order."""
        return [
            ToolCall(one.id, one.name, self._arguments.get(index) or "{}")
            for index, one in self._begun.items()
        ]

    def feed(self, text: str, *, finished: bool = False, cut: bool = False) -> str:
        """The text that is shown after this piece.

        Args:
            text: the piece.
            finished: whether it is the last one, which brings what was held back.
            cut: whether a limit ended the answer: the arguments of a call stay incomplete, so that no half of
                one is executed.
        """
        shown = self._read(self._parser.feed(text))
        if finished:
            shown += self._read(self._parser.finish(cut=cut))
        self.text += shown
        return shown

    def _read(self, parts: Iterable[AnswerPart]) -> str:
        shown = ""
        for part in parts:
            match part:
                case AnswerText(text):
                    shown += text
                case CallBegun(index):
                    self._begun[index] = part
                case CallArguments(index, text):
                    self._arguments[index] = self._arguments.get(index, "") + text
        return shown
