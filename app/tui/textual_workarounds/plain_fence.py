"""The rest of a long code fence as plain text, while an answer is streamed.

In Textual 8.2.8 an append inside a code fence highlights all of it again: 260 ms at 32 KB. What
follows the first `FENCE_LIMIT` characters is therefore shown plain until the fence closes.
"""

from textual.content import Content
from textual.widget import Widget

from app.tui.markdown_blocks.code import CodeText
from app.tui.view.fences import FenceTracker

FENCE_LIMIT = 2048
"""Characters of an open fence that are still highlighted while it grows."""
_CHUNK = 2048


class PlainFence:
    """Mounts widgets of about `_CHUNK` characters, so that only the last one is laid out."""

    def __init__(self) -> None:
        self._widgets: list[CodeText] = []
        self._text = ""  # of the last widget
        self._began_at = 0

    @property
    def shown(self) -> bool:
        """Whether part of the answer is shown plain."""
        return bool(self._widgets)

    def is_over(self, fences: FenceTracker) -> bool:
        """Whether the fence shown plain has closed, even if another one has opened since."""
        return self.shown and (fences.open_at is None or fences.open_at > self._began_at)

    async def append(
        self, text: str, fences: FenceTracker, *, parent: Widget, before: Widget
    ) -> None:
        """Show more of the open fence in `parent`, above its child `before`."""
        if not self._widgets:
            self._began_at = fences.open_at or 0
        if not self._widgets or len(self._text) > _CHUNK:
            self._text = ""
            widget = CodeText(Content(""), classes="message-tail")
            self._widgets.append(widget)

            await parent.mount(widget, before=before)
        self._text += text
        self._widgets[-1].show_code(Content(self._text))

    async def remove(self) -> None:
        """Remove what is shown."""
        for widget in self._widgets:
            await widget.remove()
        self._widgets, self._text = [], ""
