"""`chart_blocks`: a chart of Office as a table: its title, then a row for each category."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader, Handler
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.text_flow import Block

_MOST_POINTS = 10_000


def chart_blocks(data: bytes) -> list[Block]:
    """The values that the chart shows are the ones that were stored when it was last drawn."""
    reader = _ChartReader()
    reader.read(data)
    return reader.blocks()


class _Series:
    """A line or row of bars: its name, and category and value of each point by its index."""

    def __init__(self) -> None:
        self.points: dict[str, dict[int, str]] = {"tx": {}, "cat": {}, "val": {}}


class _ChartReader(ElementReader):
    def __init__(self) -> None:
        super().__init__()
        self._title: list[str] = []
        self._series: list[_Series] = []
        self._which = ""
        self._in_title = False
        self._index = 0
        self._said: list[str] | None = None
        self.handlers = {
            "title": self._begin_title,
            "p": self._paragraph,
            "t": self._text_of(self._title),
            "ser": self._begin_series,
            "tx": self._part("tx"),
            "cat": self._part("cat"),
            "xVal": self._part("cat"),
            "val": self._part("val"),
            "yVal": self._part("val"),
            "pt": self._point,
            "v": self._value,
        }

    def text(self, text: str) -> None:
        if self._said is not None:
            self._said.append(text)

    def blocks(self) -> list[Block]:
        title = " ".join("".join(self._title).split())
        found = [Block(title)] if title else []
        series = [one.points for one in self._series if one.points["val"]]
        if not series:
            return found
        categories: dict[int, str] = {}
        for one in series:
            categories |= {index: "" for index in one["val"] if index not in categories}
            categories |= {at: text for at, text in one["cat"].items() if not categories.get(at)}
        names = ["; ".join(one["tx"].values()) for one in series]
        rows = [("", *names)] if any(names) else []
        rows += [
            (categories[index], *(one["val"].get(index, "") for one in series))
            for index in sorted(categories)
        ]
        for number, row in enumerate(rows):
            found.append(Block(" | ".join(row), cells=row, tight=number > 0))
        return found

    def _begin_title(self, _: Attributes) -> Closer:
        self._in_title = True

        def end() -> None:
            self._in_title = False
            self._title.append(" ")

        return end

    def _paragraph(self, _: Attributes) -> Closer:
        return lambda: self._title.append(" ")

    def _text_of(self, said: list[str]) -> Handler:
        def start(_: Attributes) -> Closer:
            self._said = said
            return self._end_text

        return start

    def _end_text(self) -> None:
        self._said = None

    def _begin_series(self, _: Attributes) -> None:
        self._series.append(_Series())

    def _part(self, which: str) -> Handler:
        def start(_: Attributes) -> Closer:
            before, self._which, self._index = self._which, which, 0

            def end() -> None:
                self._which = before

            return end

        return start

    def _point(self, attributes: Attributes) -> None:
        value = attributes.get("idx", "")
        self._index = int(value) if value.isdecimal() and len(value) < 8 else 0

    def _value(self, _: Attributes) -> Closer | None:
        if self._in_title:  # one that stands in a cell of a sheet
            return self._text_of(self._title)({})
        if not self._series or not self._which:
            return None
        which, points = self._which, self._series[-1].points[self._which]
        said: list[str] = []
        self._said = said

        def end() -> None:
            self._said = None
            if len(points) < _MOST_POINTS:
                text = " ".join("".join(said).split())
                points[self._index] = _shown(text) if which == "val" else text

        return end


def _shown(value: str) -> str:
    """A number with the digits that a sheet keeps."""
    try:
        return f"{float(value):.15g}"
    except ValueError:
        return value
