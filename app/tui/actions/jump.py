"""Jumping: a label on every message and row in sight, and going to the one that is typed."""

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from textual.geometry import Offset
from textual.widget import Widget

from app.tui.chat_screen import ChatScreen
from app.tui.screen_layout import ScreenLayout
from app.tui.view.jump_labels import make_labels
from app.tui.widgets.branches import BranchPane
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.jump import JumpScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest


class Target(NamedTuple):
    """What one can jump to.

    Attributes:
        widget: what draws it.
        cell: where it begins on the screen.
        reach: selects and focuses it.
    """

    widget: Widget
    cell: Offset
    reach: Callable[[], Awaitable[None]]


class JumpActions:
    """The key of jumping."""

    def __init__(self, screen: ChatScreen, layout: ScreenLayout) -> None:
        self._screen = screen
        self._layout = layout

    def open(self) -> None:
        """Label the targets in sight, and go to the one whose label is typed.

        Raises:
            InvalidRequest: there is none.
        """
        if self._screen.dialog is not None:
            return
        found = [*self._messages(), *self._nodes(), *self._conversations()]
        in_sight = [target for target in found if self._is_in_sight(target)]
        if not in_sight:
            raise InvalidRequest("There is nothing here to jump to.")
        targets = dict(zip(make_labels(len(in_sight)), in_sight, strict=False))

        async def chosen(label: str | None) -> None:
            if label is not None:
                await targets[label].reach()

        cells = {label: target.cell for label, target in targets.items()}
        self._screen.open_dialog(JumpScreen(cells), chosen)

    def _is_in_sight(self, target: Target) -> bool:
        """Whether no other widget covers the target, as the left column may on a narrow terminal."""
        if not self._screen.main.region.contains_point(target.cell):
            return False
        on_top, _ = self._screen.main.get_widget_at(*target.cell)
        return target.widget in on_top.ancestors_with_self

    def _messages(self) -> Iterator[Target]:
        """The messages of the open branch of which a row is visible."""
        transcript = self._screen.main.query_one(Transcript)

        def select(node_id: str) -> Callable[[], Awaitable[None]]:
            async def reach() -> None:
                self._layout.close_overlay()
                self._screen.main.set_focus(transcript.scroll)
                await transcript.select_node(node_id, scroll=False)

            return reach

        for message in transcript.messages:
            visible = message.region.intersection(transcript.scroll.content_region)
            if visible:
                yield Target(message, visible.offset, select(message.node.id))

    def _nodes(self) -> Iterator[Target]:
        """The visible rows of the branch tree."""
        view = self._screen.main.query_one(BranchPane).tree_view

        def select(node_id: str) -> Callable[[], Awaitable[None]]:
            async def reach() -> None:
                # Without the focus, the cursor would follow the selected message.
                self._screen.main.set_focus(view)
                view.move_to(node_id)

            return reach

        region = view.scrollable_content_region
        top = view.scroll_offset.y
        for y, row in enumerate(view.rows[top : top + region.height], start=region.y):
            yield Target(view, Offset(region.x, y), select(row.node_id))

    def _conversations(self) -> Iterator[Target]:
        """The conversations of which a row of the list is visible."""
        options = self._screen.main.query_one(Conversations).options

        def select(tree_id: str) -> Callable[[], Awaitable[None]]:
            async def reach() -> None:
                self._screen.main.set_focus(options)
                options.highlighted = options.get_option_index(tree_id)

            return reach

        region = options.scrollable_content_region
        above = None
        for y in range(region.y, region.bottom):
            # Textual writes the index of an option into the style of its cells.
            at = self._screen.main.get_style_at(region.x, y).meta.get("option")
            tree_id = None if at is None else options.get_option_at_index(at).id
            if tree_id is not None and at != above:
                yield Target(options, Offset(region.x, y), select(tree_id))
            above = at
