"""`CallSink`: takes the calls that a reader finds, and makes the parts of the answer of them."""

from collections.abc import Callable, Mapping

from engine.api.answer_parts import AnswerPart, CallArguments, CallBegun
from engine.api.tools import Tool


class CallSink:
    """Receives one call after another: `begin`, the pieces of its arguments, `end`.

    Attributes:
        tools: that may be called, by name; only those may begin.
        is_open: whether a call has begun and not ended.
        count: calls that have begun.
        at_end: called when a call is complete.
    """

    def __init__(self, tools: Mapping[str, Tool], new_id: Callable[[], str]) -> None:
        """Take calls of these tools; `new_id` makes the id of each."""
        self.tools = tools
        self.is_open = False
        self.count = 0
        self.at_end: Callable[[], None] = lambda: None
        self._new_id = new_id
        self._parts: list[AnswerPart] = []
        self._pieces: list[str] = []  # of the open call's arguments, not in the parts yet

    def begin(self, name: str) -> None:
        """A call begins; from now on the text is certainly a call."""
        self._parts.append(CallBegun(self.count, self._new_id(), name))
        self.count += 1
        self.is_open = True

    def write(self, arguments: str) -> None:
        """A piece of the JSON text of the open call's arguments."""
        self._pieces.append(arguments)

    def end(self) -> None:
        """The open call is complete."""
        self.is_open = False
        self._collect_pieces()
        self.at_end()

    def take(self) -> list[AnswerPart]:
        """The parts since the last call of this method."""
        self._collect_pieces()
        parts, self._parts = self._parts, []
        return parts

    def _collect_pieces(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text:
            self._parts.append(CallArguments(self.count - 1, text))
