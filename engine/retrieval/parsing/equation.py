"""`Equation`: Office's equations on one line: `(a+b)/c`, `x^2`, `√(x+1)`."""

from engine.retrieval.parsing.element_reader import Closer, Handler, skipped
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.text_flow import TextFlow


def grouped(text: str) -> str:
    """A part of an equation that follows a sign: in parentheses if it is more than a word or number."""
    return text if len(text) == 1 or text.replace(".", "").isalnum() else f"({text})"


class Equation:
    """Puts the signs between the texts of an equation that its drawing shows by place and size.

    Its texts themselves are put by the reader whose handlers these are.
    """

    def __init__(self, flow: TextFlow) -> None:
        self._flow = flow
        self._around: list[_Part] = []
        self.handlers: dict[str, Handler] = {
            "ctrlPr": skipped,
            "oMath": lambda _: self._within("oMath"),
            **{
                name: self._structure(name)
                for name in ("d", "nary", "rad", "f", "sSup", "sSub", "sSubSup", "m", "mr", "eqArr")
            },
            "begChr": lambda attributes: self._sign("begin", attributes),
            "sepChr": lambda attributes: self._sign("separator", attributes),
            "endChr": lambda attributes: self._sign("end", attributes),
            "chr": lambda attributes: self._sign("operator", attributes),
            "num": self._grouped(""),
            "den": self._grouped("/"),
            "sup": self._grouped("^"),
            "sub": self._grouped("_"),
            "lim": self._grouped("_"),
            "fName": self._function_name,
            "e": self._element,
        }

    def _within(self, name: str) -> Closer:
        self._around.append(_Part(name))

        def end() -> None:
            part = self._around.pop()
            if part.name == "d":
                self._flow.put(part.signs["end"])

        return end

    def _structure(self, name: str) -> Handler:
        def start(_: Attributes) -> Closer | None:
            if not self._around:
                return None
            if name == "mr":
                self._around[-1].elements += 1
                if self._around[-1].elements > 1:
                    self._flow.put("; ")
            return self._within(name)

        return start

    def _sign(self, which: str, attributes: Attributes) -> None:
        if self._around:
            self._around[-1].signs[which] = attributes.get("val", "")

    def _grouped(self, before: str) -> Handler:
        """A part that follows a sign."""

        def start(_: Attributes) -> Closer | None:
            if not self._around:
                return None
            part = self._around[-1]
            if part.name == "nary" and not part.elements:
                part.elements = 1
                self._flow.put(part.signs["operator"])
            mark = self._flow.mark()

            def end() -> None:
                text = self._flow.take(mark).strip()
                if text:
                    self._flow.put(before + grouped(text))

            return end

        return start

    def _function_name(self, _: Attributes) -> Closer | None:
        return (lambda: self._flow.put(" ")) if self._around else None

    def _element(self, attributes: Attributes) -> Closer | None:
        if not self._around:
            return None
        part = self._around[-1]
        part.elements += 1
        match part.name:
            case "rad":
                return self._grouped("√")(attributes)
            case "d":
                self._flow.put(part.signs["begin" if part.elements == 1 else "separator"])
            case "mr" | "eqArr" if part.elements > 1:
                self._flow.put(", ")
            case "nary":
                self._flow.put(" ")
        return None


class _Part:
    """A structure of an equation that is being read, with the signs that it names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.signs = {"begin": "(", "separator": "|", "end": ")", "operator": "∫"}
        self.elements = 0
