"""`mathml_text`: an equation in a part of MathML on one line."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader, Handler, skipped
from engine.retrieval.parsing.math_line import math_element
from engine.retrieval.parsing.safe_xml import Attributes

_TOKENS = ("mi", "mn", "mo", "mtext", "ms")
_STRUCTURES = """mfrac msup msub msubsup mover munder munderover msqrt mroot math mrow mstyle mfenced mtable
    mtr mlabeledtr mtd semantics mpadded""".split()  # noqa: SIM905


def mathml_text(data: bytes) -> str:
    """The equation; empty if there is none."""
    reader = _MathReader()
    reader.read(data)
    return " ".join("".join(reader.parts[0]).split())


class _MathReader(ElementReader):
    """Collects the parts of each element."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[str]] = [[]]
        self._in_token = False
        self.handlers = {
            **{name: self._element(name) for name in (*_TOKENS, *_STRUCTURES)},
            **dict.fromkeys(("annotation", "annotation-xml"), skipped),
        }

    def text(self, text: str) -> None:
        if self._in_token:
            self.parts[-1].append(text.strip())

    def _element(self, name: str) -> Handler:
        def start(_: Attributes) -> Closer:
            self.parts.append([])
            self._in_token = name in _TOKENS

            def end() -> None:
                parts = self.parts.pop()
                self._in_token = False
                self.parts[-1].append(math_element(name, parts))

            return end

        return start
