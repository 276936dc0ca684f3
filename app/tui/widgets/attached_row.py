"""The row above the prompt with the files that the draft attaches."""

from collections.abc import Callable, Sequence

from app.tui.frame import Frame
from app.tui.view.attached import build_draft_files
from app.tui.view.spans import Span
from app.tui.widgets.lines import Lines


class AttachedRow(Lines):
    """Takes no room without files.

    Args:
        files: returns a span for each file of the draft.
    """

    in_view = True
    """Drawn although it is not displayed while there are no files."""

    def __init__(
        self,
        files: Callable[[], Sequence[Span]],
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._files = files
        self.display = False

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        files = self._files()
        cells = (self.size.width or self.screen.size.width) - 4
        self.show_lines([build_draft_files(files, cells)] if files else [])
        self.display = bool(files)
        return False
