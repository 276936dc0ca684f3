"""`CallFilter`: a parser of one answer that leaves out some of its calls."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from engine.api.answer_parts import AnswerPart, CallArguments, CallBegun
from engine.text.answer_parser import AnswerParser
from engine.text.tool_calls.canonical_arguments import canonical_arguments


class CallFilter(ABC):
    """Passes on the parts of a parser but for the calls that a subclass leaves out.

    Nothing of a call that may be left out is passed on before it is complete. The others keep their order,
    and are numbered without those that were left out.
    """

    def __init__(self, parser: AnswerParser) -> None:
        """Leave calls out of the parts of `parser`."""
        self._parser = parser
        self._call: list[CallBegun | CallArguments] = []
        self._is_held = False
        self._left_out = 0

    @abstractmethod
    def _may_leave_out(self, name: str) -> bool:
        """Whether a call that begins may be left out, depending on its arguments."""

    @abstractmethod
    def _leaves_out(self, name: str, arguments: str) -> bool:
        """Whether a complete call is left out; asked once of each.

        Args:
            name: of the tool.
            arguments: as canonical JSON text.
        """

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._parser.ended

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        parts = self._kept(self._parser.feed(text))
        return parts + self._complete() if self._parser.ended else parts

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        return [*self._kept(self._parser.finish(cut=cut)), *self._complete()]

    def _kept(self, parts: Sequence[AnswerPart]) -> list[AnswerPart]:
        kept: list[AnswerPart] = []
        for part in parts:
            if not isinstance(part, CallArguments):
                kept += self._complete()
            if isinstance(part, CallBegun):
                self._is_held = self._may_leave_out(part.name)
            if not isinstance(part, CallBegun | CallArguments):
                kept.append(part)
                continue
            self._call.append(part)
            if not self._is_held:
                kept.append(self._renumbered(part))
        return kept

    def _complete(self) -> list[AnswerPart]:
        """The call that was read, unless it was passed on already or is left out."""
        call, self._call = self._call, []
        if not call:
            return []
        name = "".join(part.name for part in call if isinstance(part, CallBegun))
        arguments = "".join(part.text for part in call if isinstance(part, CallArguments))
        if self._leaves_out(name, canonical_arguments(arguments)):
            self._left_out += 1
            return []
        return [self._renumbered(part) for part in call] if self._is_held else []

    def _renumbered(self, part: CallBegun | CallArguments) -> AnswerPart:
        return replace(part, index=part.index - self._left_out)
