"""`document_title`: the title in the properties of an office document."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader
from engine.retrieval.parsing.safe_xml import Attributes


def document_title(data: bytes) -> str | None:
    """The title.

    Args:
        data: `docProps/core.xml` or `meta.xml`; empty if there is none.
    """
    reader = _TitleReader()
    reader.read(data)
    return " ".join("".join(reader.said).split()) or None


class _TitleReader(ElementReader):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._inside = False
        self.handlers = {"title": self._begin}

    def text(self, text: str) -> None:
        if self._inside:
            self.said.append(text)

    def _begin(self, _: Attributes) -> Closer:
        self._inside = True

        def end() -> None:
            self._inside = False

        return end
