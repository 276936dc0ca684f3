"""`ElementReader`: reads XML by one handler for each kind of element."""

from collections.abc import Callable

from engine.retrieval.parsing.safe_xml import Attributes, read_xml

Closer = Callable[[], None]
Handler = Callable[[Attributes], Closer | None]


def skip() -> None:
    """Returned by a handler in place of what is to be done at the end: nothing inside is read."""


def skipped(_: Attributes) -> Closer:
    """The handler of an element that is not read."""
    return skip


class ElementReader:
    """Base of the readers of office documents.

    `handlers` maps local names to what is done at a start tag. A handler returns what is to be done at the
    end tag, or nothing, or `skip`. Elements without a handler are transparent. State that holds inside of an
    element is set by its handler and put back by what it returns, so that nesting is right at any depth
    without recursion.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self._closers: list[Closer | None] = []
        self._skipped = 0

    def read(self, data: bytes) -> None:
        """Read a part; nothing if there is none."""
        if data:
            read_xml(data, start=self._start, end=self._end, text=self._text)

    def text(self, text: str) -> None:
        """Characters of an element that is read."""

    def _start(self, name: str, attributes: Attributes) -> None:
        if self._skipped:
            self._skipped += 1
            return
        handler = self.handlers.get(name)
        closer = handler(attributes) if handler is not None else None
        if closer is skip:
            self._skipped = 1
        else:
            self._closers.append(closer)

    def _end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        closer = self._closers.pop()
        if closer is not None:
            closer()

    def _text(self, text: str) -> None:
        if not self._skipped:
            self.text(text)
