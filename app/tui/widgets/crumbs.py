"""The line above the messages that says which branch is open; hidden while there is only one."""

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.crumbs import build_crumbs
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks


class Crumbs(DrawnOnTicks, Lines):
    """The breadcrumb of the open branch."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs
        self._shown_for: object = None

    def on_mount(self) -> None:
        """Hidden until there is something to show."""
        self.display = False

    @property
    def in_view(self) -> bool:
        """Always: `show` decides whether the line is displayed."""
        return True

    def show(self, frame: Frame) -> bool:
        """Draw the line again after the tree or the width changed."""
        cells = self.app.size.width if self.size.width == 0 else self.size.width - 4
        key = (frame.session.version, cells)
        if key != self._shown_for:
            self._shown_for = key
            line = build_crumbs(frame.session.tree, self._glyphs, cells)
            self.display = bool(line)
            self.show_lines([line] if line else [])
        return False
