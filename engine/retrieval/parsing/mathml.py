"""`mathml_text`: an equation in MathML on one line, in the form of `Equation`."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader, Handler, skipped
from engine.retrieval.parsing.equation import grouped
from engine.retrieval.parsing.safe_xml import Attributes

_TOKENS = ("mi", "mn", "mo", "mtext", "ms")
_SIGNS: dict[str, tuple[str, ...]] = {
    "mfrac": ("", "/"),
    "msup": ("", "^"),
    "msub": ("", "_"),
    "msubsup": ("", "_", "^"),
    "mover": ("", "^"),
    "munder": ("", "_"),
    "munderover": ("", "_", "^"),
    "msqrt": ("√",),
    "mroot": ("√", "^1/"),
}
_ROWS = ("math", "mrow", "mstyle", "mfenced", "mtable", "mtr", "mtd", "semantics", "mpadded")


def mathml_text(data: bytes) -> str:
    """The equation; empty if there is none."""
    reader = _MathReader()
    reader.read(data)
    return " ".join("".join(reader.parts[0]).split())


class _MathReader(ElementReader):
    """Collects the parts of each element, and puts the signs between them that their places mean."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[str]] = [[]]
        self._in_token = False
        self.handlers = {
            **{name: self._element(name) for name in (*_TOKENS, *_SIGNS, *_ROWS)},
            **dict.fromkeys(("annotation", "annotation-xml"), skipped),
        }

    def text(self, text: str) -> None:
        if self._in_token:
            self.parts[-1].append(text.strip())

    def _element(self, name: str) -> Handler:
        signs = _SIGNS.get(name)

        def start(_: Attributes) -> Closer:
            self.parts.append([])
            self._in_token = name in _TOKENS

            def end() -> None:
                parts = self.parts.pop()
                self._in_token = False
                if signs == ("√",):
                    parts = ["√" + grouped("".join(parts))]
                elif signs is not None:
                    before = (*signs, *[""] * len(parts))
                    parts = [
                        sign + (grouped(part) if part else "")
                        for sign, part in zip(before, parts, strict=False)
                    ]
                self.parts[-1].append("".join(parts))

            return end

        return start
