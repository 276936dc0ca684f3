"""`WithoutEqualCalls`: a parser of one answer that leaves out calls that are equal to earlier ones.

Where several calls are demanded and the model has no further one to make, it repeats the first. From the
second call on, nothing of a call is passed on before it is complete.
"""

from collections.abc import Sequence

from engine.api.answer_parts import AnswerPart, CallArguments, CallBegun
from engine.text.answer_parser import AnswerParser
from engine.text.tool_calls.canonical_arguments import canonical_arguments


class WithoutEqualCalls:
    """Passes on the parts of a parser but for repeated calls.

    Attributes:
        ended: as of the parser.
    """

    def __init__(self, parser: AnswerParser) -> None:
        """Leave out repeated calls of `parser`."""
        self._parser = parser
        self._made: set[tuple[str, str]] = set()
        self._call: list[CallBegun | CallArguments] = []
        self._passed = 0  # calls
        self._is_first = True

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._parser.ended

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        parts = self._kept(self._parser.feed(text))
        if self._parser.ended:
            parts += self._complete()
        return parts

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        return [*self._kept(self._parser.finish(cut=cut)), *self._complete()]

    def _kept(self, parts: Sequence[AnswerPart]) -> list[AnswerPart]:
        kept: list[AnswerPart] = []
        for part in parts:
            if self._call and not isinstance(part, CallArguments):
                kept += self._complete()
            if isinstance(part, CallBegun | CallArguments):
                self._call.append(part)
                if self._is_first:
                    kept.append(part)
            else:
                kept.append(part)
        return kept

    def _complete(self) -> list[AnswerPart]:
        """The call that was read, if it is a new one that was not passed on already."""
        call, self._call = self._call, []
        was_passed, self._is_first = self._is_first, not call and self._is_first
        names = [part.name for part in call if isinstance(part, CallBegun)]
        made = (
            "".join(names),
            canonical_arguments(
                "".join(one.text for one in call if isinstance(one, CallArguments))
            ),
        )
        if not call or made in self._made:
            return []
        self._made.add(made)
        index, self._passed = self._passed, self._passed + 1
        return [] if was_passed else [_numbered(part, index) for part in call]


def _numbered(part: CallBegun | CallArguments, index: int) -> AnswerPart:
    if isinstance(part, CallBegun):
        return CallBegun(index, part.id, part.name)
    return CallArguments(index, part.text)
