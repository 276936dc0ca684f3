"""The sources pane: collections with their documents, and the passages of the last answer."""

from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.message import Message

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import SOURCE_KEYS, bindings
from app.tui.view.sources import RowId, SourcesState, build_sources
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing


class ReadsSources(Protocol):
    """Where the pane reads what it shows; what is not there yet is read in the background."""

    def refresh(self) -> None:
        """Read the collections and documents anew: another process may have changed them."""
        ...

    def read(self, unfolded: frozenset[str]) -> SourcesState:
        """The present state, with the documents of the unfolded collections."""
        ...


class SourcesPane(DrawnOnTicks, VerticalScroll, can_focus=True):
    """Rows with a cursor; what `enter` and `space` do is in `actions/sources.py`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(SOURCE_KEYS)

    class Opened(Message):
        """`enter` was pressed on a passage."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    class AttachAsked(Message):
        """`space` was pressed on a collection."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class WatchAsked(Message):
        """A collection is to be watched, or not any more."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class RemoveAsked(Message):
        """A collection is to be deleted, or a document of it."""

        def __init__(self, name: str, path: str) -> None:
            super().__init__()
            self.name = name
            self.path = path
            """Empty for the collection."""

    def __init__(
        self,
        reader: ReadsSources,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._reader = reader
        self._glyphs = glyphs
        self._cursor: RowId | None = None
        self._rows: list[RowId | None] = []
        self._unfolded: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="source-lines")

    def on_show(self) -> None:
        """Read anew, and request a tick."""
        self._reader.refresh()
        super().on_show()

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        cells = self.scrollable_content_region.width
        if cells <= 1:
            return False
        state = self._reader.read(self._unfolded)
        lines, rows = build_sources(state, self._cursor, self._glyphs, cells)
        if self._cursor is None or self._cursor not in rows:
            self._cursor = next((one for one in rows if one is not None), None)
            lines, rows = build_sources(state, self._cursor, self._glyphs, cells)
        self._rows = rows
        self.query_one("#source-lines", Lines).show_lines(lines)
        return False

    def action_move(self, steps: int) -> None:
        """Move the cursor."""
        places = [at for at, one in enumerate(self._rows) if one is not None]
        if not places or self._cursor not in self._rows:
            return
        now = places.index(self._rows.index(self._cursor))
        at = places[max(0, min(now + steps, len(places) - 1))]
        self._cursor = self._rows[at]
        top = 0 if at == places[0] else at
        self.scroll_to_region(Region(0, top, 1, at - top + 1), animate=False)
        self.post_message(NeedsDrawing())

    def action_open(self) -> None:
        """Open the passage, or list the documents of the collection."""
        if self._cursor is not None and self._cursor.kind == "passage":
            self.post_message(self.Opened(int(self._cursor.key)))
        else:
            self.action_fold()

    def action_fold(self) -> None:
        """List the documents of the collection, or hide them."""
        name = self._collection()
        if name:
            self._unfolded ^= {name}
            self._cursor = RowId("collection", name)
            self.post_message(NeedsDrawing())

    def action_attach(self) -> None:
        """Attach the collection to the branch, or detach it."""
        if name := self._collection():
            self.post_message(self.AttachAsked(name))

    def action_watch(self) -> None:
        """Watch the collection, or end that."""
        if name := self._collection():
            self.post_message(self.WatchAsked(name))

    def action_remove(self) -> None:
        """Delete the collection or the document under the cursor; asks first."""
        if name := self._collection():
            row = self._cursor
            path = row.key if row is not None and row.kind == "document" else ""
            self.post_message(self.RemoveAsked(name, path))

    def _collection(self) -> str:
        """The collection under the cursor, or of the document there; empty for none."""
        row = self._cursor
        if row is None or row.kind == "passage":
            return ""
        return row.key if row.kind == "collection" else row.collection
