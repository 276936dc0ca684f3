"""`WithoutEqualCalls`: a parser of one answer that leaves out calls that are equal to earlier ones.

Where several calls are demanded and the model has no further one to make, it repeats the first. From the
second call on, nothing of a call is passed on before it is complete.
"""

from engine.text.answer_parser import AnswerParser
from engine.text.tool_calls.call_filter import CallFilter


class WithoutEqualCalls(CallFilter):
    """Leaves out repeated calls."""

    def __init__(self, parser: AnswerParser) -> None:
        """Leave out repeated calls of `parser`."""
        super().__init__(parser)
        self._made: set[tuple[str, str]] = set()

    def _may_leave_out(self, name: str) -> bool:
        return bool(self._made)

    def _leaves_out(self, name: str, arguments: str) -> bool:
        if (name, arguments) in self._made:
            return True
        self._made.add((name, arguments))
        return False
