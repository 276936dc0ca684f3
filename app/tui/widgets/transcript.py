"""The open conversation: a scroll container of at most 60 mounted messages.

Anchored to the end until the user scrolls up; then the visible text does not move, and a line below it
counts new lines. Ten more messages are mounted when either end of the mounted range is reached.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Region
from textual.message import Message as Event

from app.tui.glyphs import Glyphs
from app.tui.keys import NAVIGATE_KEYS, TRANSCRIPT_KEYS, bindings
from app.tui.textual_workarounds.laid_out_once import LaidOutOnce
from app.tui.textual_workarounds.uniform_rows import UniformRows
from app.tui.view.messages import ONLY_CHILD, SiblingPlace
from app.tui.view.spans import Line, Span
from app.tui.view.window import Window
from app.tui.widgets.lines import Lines
from app.tui.widgets.message import Message
from app.tui.widgets.needs_drawing import NeedsDrawing
from engine.conversations.tree import NodeDelta, NodeStatus, NodeView, awaits_agent

_RECENT = 4
"""Number of nodes at the path's end that can be streaming."""


class MessageScroll(UniformRows, LaidOutOnce, VerticalScroll, can_focus=True):
    """The scroll container. Reports movement, so that the transcript can load messages and count lines."""

    BINDINGS: ClassVar[list[BindingType]] = bindings((*TRANSCRIPT_KEYS, *NAVIGATE_KEYS))

    class Moved(Event):
        """The scroll position changed."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Notify the transcript."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())


class Transcript(Vertical):
    """Messages of the path from the root to the head, and the cursor of navigate mode.

    Args:
        place_of: returns which of its siblings a node is.
        rows_below: returns rows to show below a message that has finished: its passages and citations.
        folded: returns the text of a user's message to show, and the rows of its attached files.
        thought: returns the row of an answer's reasoning, and whether its text is shown.
    """

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        place_of: Callable[[str], SiblingPlace] = lambda node_id: ONLY_CHILD,
        rows_below: Callable[[NodeView], list[Line]] = lambda node: [],
        folded: Callable[[NodeView], tuple[str, list[Line]]] = lambda node: (node.text, []),
        thought: Callable[[NodeView], tuple[Line, bool]] = lambda node: ((), False),
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._place_of = place_of
        self._rows_below = rows_below
        self._folded = folded
        self._thought = thought
        self._path: tuple[NodeView, ...] = ()
        self._window = Window(0, 0, 0)
        self._selected: str | None = None
        self._reported: str | None = None
        self._marked: frozenset[str] = frozenset()
        self._left_at: int | None = None  # height of the content when the view left its end
        self._loading_earlier = False
        # Ticks, actions and scrolling mount messages, and a message must be mounted before text is
        # written to it. All changes of the mounted messages hold this lock.
        self._mount_lock = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """The scroll container between two lines that count hidden messages."""
        yield Lines(id="earlier")
        yield MessageScroll(id="messages")
        yield Lines(id="newer")

    def on_mount(self) -> None:
        """Follow the end."""
        self.scroll.anchor()
        self._show_edges()

    @property
    def scroll(self) -> MessageScroll:
        """The scroll container."""
        return self.query_one("#messages", MessageScroll)

    @property
    def path(self) -> tuple[NodeView, ...]:
        """The messages, root first, mounted or not."""
        return self._path

    @property
    def selected(self) -> NodeView | None:
        """The message under the cursor of navigate mode; the text of a streaming one can be old."""
        return next((node for node in self._path if node.id == self._selected), None)

    @property
    def selected_id(self) -> str | None:
        """The id of the message under the cursor of navigate mode."""
        return self._selected

    @property
    def messages(self) -> list[Message]:
        """Mounted messages, in order."""
        return list(self.scroll.query_children(Message))

    async def load(self, path: Sequence[NodeView]) -> None:
        """Show a path; messages that it shares with the previous path remain mounted."""
        async with self._mount_lock:
            await self._load(path)

    async def _load(self, path: Sequence[NodeView]) -> None:
        same = len(path) >= len(self._path) and all(
            old.id == new.id for old, new in zip(self._path, path, strict=False)
        )
        window = self._window.grown(len(path)) if same and self._path else Window.at_end(len(path))
        self._path = tuple(path)
        if not any(node.id == self._selected for node in path):
            self._selected = None
        await self._mount(window)
        if not same:
            self.scroll.anchor()

    async def apply(
        self,
        deltas: Sequence[NodeDelta],
        read_path: Callable[[], Sequence[NodeView]],
        *,
        crowded: bool = False,
    ) -> None:
        """Write new text.

        Args:
            deltas: the result of the session's `pump`.
            read_path: returns the open conversation's current nodes. Called only when a node began or
                finished, because it costs O(messages).
            crowded: as `Message.write`.
        """
        async with self._mount_lock:
            await self._apply(deltas, read_path, crowded)

    async def _apply(
        self,
        deltas: Sequence[NodeDelta],
        read_path: Callable[[], Sequence[NodeView]],
        crowded: bool,
    ) -> None:
        mounted = {message.node.id: message for message in self.messages}
        known = {node.id for node in self._path[-_RECENT:]}
        if any(
            delta.node_id not in known or delta.status is not NodeStatus.STREAMING or not delta.text
            for delta in deltas
        ):
            path = read_path()
            if [node.id for node in path] != [node.id for node in self._path]:
                await self._load(path)
                # New widgets showed their node's whole text on mount: write deltas to older ones only.
                mounted = {id_: m for id_, m in mounted.items() if m.is_attached}
            self._path = tuple(path)
        nodes = {node.id: node for node in self._path[-_RECENT:]}
        for delta in deltas:
            message = mounted.get(delta.node_id)
            if message is None:
                continue
            if delta.text:
                await message.write(delta.text, crowded=crowded)
            if delta.node_id not in nodes:
                continue
            if delta.status is not NodeStatus.STREAMING:
                await message.finish(nodes[delta.node_id])
            elif not delta.text:
                message.wait(nodes[delta.node_id])
        if not self._following:
            # The height of new lines is known only after the next layout.
            self.call_after_refresh(self._show_edges)

    async def finish_awaited(self, path: Sequence[NodeView]) -> None:
        """Show the answers of agents that have come, in their places on the open path."""
        nodes = {node.id: node for node in path}
        async with self._mount_lock:
            for message in self.messages:
                node = nodes.get(message.node.id)
                if node is None or not awaits_agent(message.node) or awaits_agent(node):
                    continue
                await message.write(node.text)
                await message.finish(node)
            self._path = tuple(nodes.get(node.id, node) for node in self._path)

    async def _mount(self, window: Window) -> None:
        """Mount the messages of `window` and unmount all others; common ones are kept."""
        wanted = {node.id: node for node in self._path[window.start : window.end]}
        kept = {message.node.id: message for message in self.messages}
        with self.app.batch_update():
            for node_id, message in kept.items():
                if node_id not in wanted:
                    await message.remove()
            before = next((message for message in self.messages), None)
            head: list[Message] = []
            tail: list[Message] = []
            seen_kept = False
            for node_id, node in wanted.items():
                if node_id in kept:
                    seen_kept = True
                    kept[node_id].show_place(node, self._place_of(node_id))
                    continue
                message = Message(
                    node,
                    self._glyphs,
                    self._place_of(node_id),
                    rows_below=self._rows_below,
                    folded=self._folded,
                    thought=self._thought,
                )
                (tail if seen_kept else head).append(message)
            if head:
                await self.scroll.mount_all(head, before=before)
            if tail:
                await self.scroll.mount_all(tail)
        self._window = window
        self._mark_selected()
        self._show_edges()

    def show_thought(self, node_id: str) -> None:
        """Show or fold the reasoning of an answer."""
        for message in self.messages:
            if message.node.id == node_id:
                message.show_thought()

    def refold(self, node_id: str) -> None:
        """Show or hide the texts of the files that are attached to a message."""
        for message in self.messages:
            if message.node.id == node_id:
                message.refold()

    def show_rows(self, node_id: str) -> None:
        """Show again the rows below a message, which have changed."""
        for message in self.messages:
            if message.node.id == node_id:
                message.show_rows()

    async def on_message_scroll_moved(self) -> None:
        """Load more at the edges; update the counting lines."""
        scroll = self.scroll
        if not self._following:
            async with self._mount_lock:
                if scroll.scroll_y <= 0 and self._window.start > 0:
                    await self._load_earlier()
                elif scroll.scroll_y >= scroll.max_scroll_y and not self._window.follows:
                    await self._mount(self._window.later())
        self._show_edges()

    async def _load_earlier(self) -> None:
        """Mount ten earlier messages without moving the visible ones."""
        if self._loading_earlier or self._window.start == 0:
            return
        self._loading_earlier = True
        scroll = self.scroll
        anchor = next(iter(self.messages), None)
        top = anchor.virtual_region.y - scroll.scroll_y if anchor else 0
        await self._mount(self._window.earlier())

        def restore() -> None:
            if anchor is not None and anchor.is_attached:
                scroll.scroll_to(y=anchor.virtual_region.y - top, animate=False, force=True)
            self._loading_earlier = False

        self.call_after_refresh(restore)

    @property
    def _following(self) -> bool:
        return self.scroll.is_anchored and not self.scroll._anchor_released

    def _show_edges(self) -> None:
        earlier = self.query_one("#earlier", Lines)
        count = self._window.start
        earlier.display = count > 0
        if count:
            earlier.show_lines(
                [(Span(f"{self._glyphs.more_up} {count} earlier messages", "$faint"),)]
            )
        newer = self.query_one("#newer", Lines)
        height = self.scroll.virtual_size.height
        if self._following:
            self._left_at = None
            newer.display = False
            return
        if self._left_at is None:
            self._left_at = height
        hidden = self._path[self._window.end :]
        lines = max(0, height - self._left_at)
        text = ""
        if hidden:
            text = f"{self._glyphs.more_down} {len(hidden)} later messages (End)"
        elif lines:
            text = f"{self._glyphs.more_down} {lines} new line{'' if lines == 1 else 's'} (End)"
        elif self.scroll.scroll_y < self.scroll.max_scroll_y:
            text = f"{self._glyphs.more_down} more below (End)"
        newer.display = bool(text)
        if text:
            newer.show_lines([(Span(text, "$accent", "app.message('end')"),)])

    async def select(self, where: str) -> None:
        """Move the cursor to the `next`, `previous`, `first` or `last` message.

        At either end, `next` and `previous` have no effect. `end` removes the cursor and follows the
        newest text.
        """
        async with self._mount_lock:
            if self._path:
                await self._select(where)

    async def _select(self, where: str) -> None:
        ids = [node.id for node in self._path]
        last = len(ids) - 1
        at = ids.index(self._selected) if self._selected in ids else None
        target = {
            "first": 0,
            "last": last,
            "end": last,
            "next": last if at is None else min(at + 1, last),
            "previous": last if at is None else max(at - 1, 0),
        }[where]
        self._selected = None if where == "end" else ids[target]
        if where in {"last", "end"}:
            if not self._window.follows:
                await self._mount(Window.at_end(len(ids)))
            self.scroll.anchor()
        else:
            await self._scroll_to_message(target)
        self._mark_selected()
        self._show_edges()

    async def select_node(self, node_id: str, *, scroll: bool = True) -> bool:
        """Move the cursor to a message of the path; False if it is not on it.

        Args:
            node_id: the message.
            scroll: show its beginning also if a part of it is visible.
        """
        async with self._mount_lock:
            ids = [node.id for node in self._path]
            if node_id not in ids:
                return False
            self._selected = node_id
            if scroll or not any(message.node.id == node_id for message in self.messages):
                await self._scroll_to_message(ids.index(node_id))
            self._mark_selected()
            self._show_edges()
        return True

    def scroll_to_token(self, node_id: str, unit: int) -> bool:
        """Scroll so that a token is visible; False if its tokens have not been laid out yet."""
        for message in self.messages:
            view = message.token_view
            if message.node.id != node_id or view is None or not view.content_size.width:
                continue
            scroll = self.scroll
            row = view.content_region.y - scroll.content_region.y + view.row_of(unit)
            if not 0 <= row < scroll.content_region.height:
                scroll.release_anchor()
                region = Region(0, row + round(scroll.scroll_y), 1, 1)
                scroll.scroll_to_region(region, animate=False, force=True)
            return True
        return False

    async def _scroll_to_message(self, index: int) -> None:
        window = self._window
        while index < window.start:
            window = window.earlier()
        while index >= window.end:
            window = window.later()
        if window != self._window:
            await self._mount(window)
        for message in self.messages:
            if message.node.id == self._selected:
                self.scroll.release_anchor()
                message.scroll_visible(animate=False)

    def clear_selection(self) -> bool:
        """Remove the cursor; True if there was one."""
        had = self._selected is not None
        self._selected = None
        self._mark_selected()
        return had

    def show_marked(self, node_ids: Iterable[str]) -> None:
        """Show which messages are marked for comparison."""
        self._marked = frozenset(node_ids)
        self._mark_selected()

    def _mark_selected(self) -> None:
        for message in self.messages:
            message.set_marked(message.node.id in self._marked)
            message.set_class(message.node.id == self._selected, "-selected")
        if self._selected != self._reported:
            self._reported = self._selected
            self.post_message(NeedsDrawing())  # hints and branch tree follow the cursor
