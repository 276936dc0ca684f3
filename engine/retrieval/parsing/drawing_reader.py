"""`DrawingReader`: what documents and slides have in common: alternatives, equations, pictures, diagrams."""

from collections.abc import Callable

from engine.retrieval.parsing.chart import chart_blocks
from engine.retrieval.parsing.diagram import diagram_blocks
from engine.retrieval.parsing.element_reader import Closer, ElementReader, skip
from engine.retrieval.parsing.equation import Equation
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.text_flow import Block, TextFlow


class DrawingReader(ElementReader):
    """Base of the readers of Office Open XML.

    Of several ways to say the same (`mc:AlternateContent`), the first is read.
    """

    def __init__(self, package: OfficePackage, part: str, sink: Callable[[Block], None]) -> None:
        """Prepare.

        Args:
            package: the document.
            part: that is read.
            sink: takes the blocks.
        """
        super().__init__()
        self.package, self.part = package, part
        self.flow = TextFlow(sink)
        self._chosen: list[bool] = []
        self._known: dict[str, list[Block]] = {}
        self.handlers |= {
            **Equation(self.flow).handlers,
            "AlternateContent": self._alternatives,
            "Choice": self._alternative,
            "Fallback": self._alternative,
            "relIds": self._diagram,
            "chart": self._chart,
        }

    def _alternatives(self, _: Attributes) -> Closer:
        self._chosen.append(False)

        def end() -> None:
            self._chosen.pop()

        return end

    def _alternative(self, _: Attributes) -> Closer | None:
        if self._chosen:
            if self._chosen[-1]:
                return skip
            self._chosen[-1] = True
        return None

    def _diagram(self, attributes: Attributes) -> None:
        part = self.package.target(self.part, attributes.get("dm", ""))
        self._add(part, lambda: diagram_blocks(self.package, self.part, part))

    def _chart(self, attributes: Attributes) -> None:
        part = self.package.target(self.part, attributes.get("id", ""))
        self._add(part, lambda: chart_blocks(self.package.read(part)))

    def _add(self, part: str, read: Callable[[], list[Block]]) -> None:
        """Anchor the text of another part here; it is read once."""
        if part:
            if part not in self._known:
                self._known[part] = read()
            self.flow.add_aside(self._known[part])
