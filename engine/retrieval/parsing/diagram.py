"""`diagram_blocks`: the texts of a diagram of Office (SmartArt)."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader, skip
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.text_flow import Block, TextFlow

_UNSEEN = frozenset(("pres", "parTrans", "sibTrans"))


def diagram_blocks(package: OfficePackage, part: str, data: str) -> list[Block]:
    """One paragraph for each paragraph in its shapes.

    Args:
        package: the document.
        part: in which the diagram stands.
        data: its part with the points. Their order is that of their creation, so the drawing that Office
            has stored of it is read in its place where there is one.
    """
    points = _PointReader()
    points.read(package.read(data))
    drawing = _PointReader()
    drawing.read(package.read(package.target(part, points.drawing)))
    return drawing.blocks or points.blocks


class _PointReader(ElementReader):
    """Reads points or shapes: both hold paragraphs of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.drawing = ""
        self._flow = TextFlow(self.blocks.append)
        self._in_run = self._in_text = False
        self.handlers = {
            "pt": lambda attributes: skip if attributes.get("type") in _UNSEEN else None,
            "dataModelExt": self._extension,
            "r": self._run,
            "fld": self._run,
            "t": self._begin_text,
            "br": self._line_break,
            "p": lambda _: self._end_paragraph,
        }

    def text(self, text: str) -> None:
        if self._in_text:
            self._flow.put(text)

    def _extension(self, attributes: Attributes) -> None:
        self.drawing = attributes.get("relId", "")

    def _run(self, _: Attributes) -> Closer:
        self._in_run = True

        def end() -> None:
            self._in_run = False

        return end

    def _begin_text(self, _: Attributes) -> Closer | None:
        if not self._in_run:
            return None  # `dgm:t`, which holds the paragraphs of a point
        self._in_text = True

        def end() -> None:
            self._in_text = False

        return end

    def _line_break(self, _: Attributes) -> None:
        self._flow.put("\n")

    def _end_paragraph(self) -> None:
        self._flow.end_paragraph(tight=bool(self.blocks))
