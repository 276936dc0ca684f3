"""Calls that a model repeats although they bring nothing new.

Small models tend to answer a tool's result with the same call, for ever. A call is *exhausted* if the last
two calls of the conversation are equal to it (name and arguments), with equal results, and the user has not
spoken since. `WithoutRepeats` leaves it out of an answer.
"""

from collections.abc import Sequence

from engine.api.answer_parts import AnswerPart, AnswerText, CallArguments, CallBegun
from engine.api.chat import ChatMessage, text_of
from engine.text.answer_parser import AnswerParser
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


class WithoutRepeats:
    """A parser of one answer that leaves out one call.

    Of a call with the name of that one nothing is passed on before it is complete. An answer that would be
    empty says why.

    Attributes:
        ended: as of the parser.
    """

    def __init__(self, parser: AnswerParser, exhausted: NameAndArguments) -> None:
        """Leave `exhausted` out of the parts of `parser`."""
        self._parser = parser
        self._name, self._arguments = exhausted
        self._held: list[CallBegun | CallArguments] = []
        self._dropped = 0
        self._is_empty = True

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._parser.ended

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        parts = self._kept(self._parser.feed(text))
        if self._parser.ended:
            parts += self._at_end()
        return parts

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        return [*self._kept(self._parser.finish(cut=cut)), *self._at_end()]

    def _kept(self, parts: Sequence[AnswerPart]) -> list[AnswerPart]:
        kept: list[AnswerPart] = []
        for part in parts:
            if self._held and not isinstance(part, CallArguments):
                kept += self._release()
            if (isinstance(part, CallBegun) and part.name == self._name) or (
                self._held and isinstance(part, CallArguments)
            ):
                self._held.append(part)
            else:
                kept.append(self._renumbered(part))
        self._is_empty = self._is_empty and not kept
        return kept

    def _release(self) -> list[AnswerPart]:
        """The call that was held back; nothing if it is the exhausted one."""
        held, self._held = self._held, []
        arguments = "".join(part.text for part in held if isinstance(part, CallArguments))
        if held and canonical_arguments(arguments) == self._arguments:
            self._dropped += 1
            return []
        return [self._renumbered(part) for part in held]

    def _at_end(self) -> list[AnswerPart]:
        parts = self._release()
        if self._is_empty and self._dropped and not parts:
            self._is_empty = False
            text = f"The call {self._name}({self._arguments}) was made twice, with the same result."
            return [AnswerText(text)]
        return parts

    def _renumbered(self, part: AnswerPart) -> AnswerPart:
        """A part with the index that its call has without those that were left out."""
        match part:
            case CallBegun(index, call_id, name):
                return CallBegun(index - self._dropped, call_id, name)
            case CallArguments(index, text):
                return CallArguments(index - self._dropped, text)
            case _:
                return part
