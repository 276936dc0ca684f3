"""`WithoutTags`: a parser of an answer that leaves out the tags around it, such as `<response>`."""

from collections.abc import Sequence

from engine.api.answer_parts import AnswerPart
from engine.text.answer_parser import AnswerParser
from engine.text.partial_marker import divided_before


class WithoutTags:
    """Passes an answer to another parser without a tag at its beginning and one at its end.

    Only spaces may stand before the first tag and after the last; spaces inside of a tag that was left out
    are left out as well.
    """

    def __init__(self, tags: tuple[str, str], rest: AnswerParser) -> None:
        """Leave out `tags`, either of which may be empty."""
        self._opening, self._closing = tags
        self._rest = rest
        self._held = ""
        self._has_begun = not self._opening
        self._follows_opening = False

    @property
    def ended(self) -> bool:
        """Whether the rest of the answer is not to be read."""
        return self._rest.ended

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        self._held += text
        if not self._has_begun:
            written = self._held.lstrip()
            if self._opening.startswith(written) and len(written) < len(self._opening):
                return []
            self._has_begun = True
            if written.startswith(self._opening):
                self._held = written[len(self._opening) :]
                self._follows_opening = True
        if self._follows_opening:
            self._held = self._held.lstrip()
            self._follows_opening = not self._held
        shown, self._held = self._divided()
        return self._rest.feed(shown) if shown else []

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        held, self._held = self._held, ""
        written = held.rstrip()
        if self._closing and written.endswith(self._closing):
            held = written[: -len(self._closing)].rstrip()
        return [*(self._rest.feed(held) if held else ()), *self._rest.finish(cut=cut)]

    def _divided(self) -> tuple[str, str]:
        """The text that is certain, and what may be the tag at the answer's end, with the space before it."""
        text = self._held
        if not self._closing:
            return text, ""
        written = text.rstrip()
        if not written.endswith(self._closing):
            return divided_before(text, self._closing)
        certain = written[: -len(self._closing)].rstrip()
        return certain, text[len(certain) :]
