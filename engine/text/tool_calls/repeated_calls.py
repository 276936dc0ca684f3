"""Calls that a model repeats although they bring nothing new.

Small models tend to answer a tool's result with the same call, for ever. A call is *exhausted* if the last
two calls of the conversation are equal to it (name and arguments), with equal results, and the user has not
spoken since. `WithoutRepeats` leaves it out of an answer.
"""

from collections.abc import Sequence

from engine.api.answer_parts import AnswerPart, AnswerText
from engine.api.chat import ChatMessage, text_of
from engine.text.answer_parser import AnswerParser
from engine.text.tool_calls.call_filter import CallFilter
from engine.text.tool_calls.canonical_arguments import canonical_arguments
from engine.text.tool_calls.last_speaker import is_of_user

NameAndArguments = tuple[str, str]
"""A call, its arguments as canonical JSON text."""

ALLOWED_REPEATS = 2
"""Calls in a row that may be equal and have equal results."""


def exhausted_call(messages: Sequence[ChatMessage]) -> NameAndArguments | None:
    """The call that a conversation ends with so often that it is not to be made again."""
    results: dict[str, str] = {}  # of the calls before them; ids may recur in a conversation
    last: tuple[NameAndArguments, str] | None = None
    count = 0
    for message in reversed(messages):
        if is_of_user(message):
            break
        if message["role"] == "tool":
            results[message["tool_call_id"]] = text_of(message["content"])
            continue
        for call in reversed(message.get("tool_calls") or ()):
            if call["id"] not in results:
                return None
            function = call["function"]
            made = (
                (function["name"], canonical_arguments(function["arguments"])),
                results[call["id"]],
            )
            if last is not None and made != last:
                return None
            last, count = made, count + 1
            if count == ALLOWED_REPEATS:
                return last[0]
        results.clear()
    return None


class WithoutRepeats(CallFilter):
    """Leaves out one call. An answer that would be empty says why."""

    def __init__(self, parser: AnswerParser, exhausted: NameAndArguments) -> None:
        """Leave `exhausted` out of the parts of `parser`."""
        super().__init__(parser)
        self._exhausted = exhausted
        self._is_empty = True

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        return self._explained(super().feed(text), at_end=self.ended)

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        return self._explained(super().finish(cut=cut), at_end=True)

    def _may_leave_out(self, name: str) -> bool:
        return name == self._exhausted[0]

    def _leaves_out(self, name: str, arguments: str) -> bool:
        return (name, arguments) == self._exhausted

    def _explained(self, parts: Sequence[AnswerPart], *, at_end: bool) -> Sequence[AnswerPart]:
        """The parts, or why there are none in the whole answer."""
        self._is_empty = self._is_empty and not parts
        if not (at_end and self._is_empty and self._left_out):
            return parts
        self._is_empty = False
        name, arguments = self._exhausted
        return [AnswerText(f"The call {name}({arguments}) was made twice, with the same result.")]
