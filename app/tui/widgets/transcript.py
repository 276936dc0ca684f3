"""The open conversation: a scroll container of at most 60 mounted messages.

Anchored to the end until someone scrolls up; then nothing moves under the reader and a line below
counts what arrived. Ten more messages are mounted when either end of the mounted range is reached.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message as Event

from app.tui.glyphs import Glyphs
from app.tui.keys import TRANSCRIPT_KEYS, bindings
from app.tui.textual_workarounds.laid_out_once import LaidOutOnce
from app.tui.textual_workarounds.uniform_rows import UniformRows
from app.tui.view.spans import Span
from app.tui.view.window import Window
from app.tui.widgets.lines import Lines
from app.tui.widgets.message import Message
from engine.conversations.tree import NodeDelta, NodeStatus, NodeView

_RECENT = 4
"""Nodes at the path's end among which a streaming one is looked for."""


class MessageScroll(UniformRows, LaidOutOnce, VerticalScroll, can_focus=True):
    """The scrolling part. Reports movement, so that the transcript can load more and count lines."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TRANSCRIPT_KEYS)

    class Moved(Event):
        """The view moved, or its content grew."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell the transcript."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())


class Transcript(Vertical):
    """Messages of the path from the root to the head, and the cursor of navigate mode."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs
        self._path: tuple[NodeView, ...] = ()
        self._window = Window(0, 0, 0)
        self._selected: str | None = None
        self._left_at: int | None = None  # height of the content when the view left its end
        self._shifting = False
        # Ticks, actions and scrolling all mount messages; a message must be mounted before it is
        # written to. Whoever changes what is mounted holds the lock.
        self._changing = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """The scroll container between the two counting lines."""
        yield Lines(id="earlier")
        yield MessageScroll(id="messages")
        yield Lines(id="newer")

    def on_mount(self) -> None:
        """Follow the end from the start."""
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
        """The message under the cursor of navigate mode; a streaming one's text may lag behind."""
        return next((node for node in self._path if node.id == self._selected), None)

    @property
    def messages(self) -> list[Message]:
        """Mounted messages, in order."""
        return list(self.scroll.query_children(Message))

    async def load(self, path: Sequence[NodeView]) -> None:
        """Show a path: the same messages stay mounted, others are replaced."""
        async with self._changing:
            await self._load(path)

    async def _load(self, path: Sequence[NodeView]) -> None:
        same = len(path) >= len(self._path) and all(
            old.id == new.id for old, new in zip(self._path, path, strict=False)
        )
        window = self._window.grown(len(path)) if same and self._path else Window.at_end(len(path))
        self._path = tuple(path)
        if not same:
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
        """Write what arrived.

        Args:
            deltas: what the session's `pump` returned.
            read_path: the open conversation's nodes as they are now. Asked only when one began or
                ended, since it costs O(messages).
            crowded: as `Message.write`.
        """
        async with self._changing:
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
            delta.node_id not in known or delta.status is not NodeStatus.STREAMING
            for delta in deltas
        ):
            path = read_path()
            if [node.id for node in path] != [node.id for node in self._path]:
                await self._load(path)
                # Fresh widgets showed their node's whole text on mount: only older ones take deltas.
                mounted = {id_: m for id_, m in mounted.items() if m.is_attached}
            self._path = tuple(path)
        nodes = {node.id: node for node in self._path[-_RECENT:]}
        for delta in deltas:
            message = mounted.get(delta.node_id)
            if message is None:
                continue
            if delta.text:
                await message.write(delta.text, crowded=crowded)
            if delta.status is not NodeStatus.STREAMING and delta.node_id in nodes:
                await message.finish(nodes[delta.node_id])
        if not self._following:
            # The new lines have their height only after the next layout.
            self.call_after_refresh(self._show_edges)

    async def _mount(self, window: Window) -> None:
        """Make the mounted messages those of `window`, keeping every widget that stays."""
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
                    continue
                (tail if seen_kept else head).append(Message(node, self._glyphs))
            if head:
                await self.scroll.mount_all(head, before=before)
            if tail:
                await self.scroll.mount_all(tail)
        self._window = window
        self._mark_selected()
        self._show_edges()

    async def on_message_scroll_moved(self) -> None:
        """Load more at the edges; update the counting lines."""
        scroll = self.scroll
        if not self._following:
            async with self._changing:
                if scroll.scroll_y <= 0 and self._window.start > 0:
                    await self._load_earlier()
                elif scroll.scroll_y >= scroll.max_scroll_y and not self._window.follows:
                    await self._mount(self._window.later())
        self._show_edges()

    async def _load_earlier(self) -> None:
        """Mount ten earlier messages; what was on screen stays where it was."""
        if self._shifting or self._window.start == 0:
            return
        self._shifting = True
        scroll = self.scroll
        anchor = next(iter(self.messages), None)
        top = anchor.virtual_region.y - scroll.scroll_y if anchor else 0
        await self._mount(self._window.earlier())

        def restore() -> None:
            if anchor is not None and anchor.is_attached:
                scroll.scroll_to(y=anchor.virtual_region.y - top, animate=False, force=True)
            self._shifting = False

        self.call_after_refresh(restore)

    @property
    def _following(self) -> bool:
        return self.scroll.is_anchored and not self.scroll._anchor_released

    def _show_edges(self) -> None:
        earlier = self.query_one("#earlier", Lines)
        count = self._window.start
        earlier.display = count > 0
        if count:
            earlier.show([(Span(f"{self._glyphs.more_up} {count} earlier messages", "$faint"),)])
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
            newer.show([(Span(text, "$accent", "app.message('end')"),)])

    async def select(self, where: str) -> None:
        """Move the cursor: `next`, `previous`, `first` or `last`; past an end it stays.

        `end` drops the cursor and follows the newest text.
        """
        async with self._changing:
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
            await self._bring_in(target)
        self._mark_selected()
        self._show_edges()

    async def _bring_in(self, index: int) -> None:
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
        """Drop the cursor; True when there was one."""
        had = self._selected is not None
        self._selected = None
        self._mark_selected()
        return had

    def _mark_selected(self) -> None:
        for message in self.messages:
            message.set_class(message.node.id == self._selected, "-selected")
