"""The branch tree of the open conversation, below the conversation list.

Guard: only visible rows are built, so that a tree of 10,000 nodes costs no more to scroll than a small
one. The rows are ordered again only after the tree changed. Residency is asked for the visible leaves,
for at most `RESIDENCY_S` a tick while the engine is idle.
"""

import time
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual, visualize

from app.tui.fork_prices import ForkPrices
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import BRANCH_KEYS, NAVIGATE_KEYS, bindings
from app.tui.marks import Marks
from app.tui.view.content import to_content
from app.tui.view.stats import is_busy
from app.tui.view.tree_lines import (
    Residency,
    TreeMarks,
    TreeRow,
    build_tree_heading,
    build_tree_line,
    build_tree_rows,
    differences,
    models_by_answer,
    names_by_node,
)
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing
from engine.conversations.session import TreeSession

RESIDENCY_S = 0.004
"""Seconds a tick for asking how much of the leaves' KV is in the pool."""


class BranchTreeView(ScrollView, can_focus=True):
    """The rows, with a cursor and folded subtrees."""

    BINDINGS: ClassVar[list[BindingType]] = bindings((*BRANCH_KEYS, *NAVIGATE_KEYS))

    class Opened(Message):
        """A node was double-clicked."""

    def __init__(
        self, session: TreeSession, prices: ForkPrices, compared: Marks, glyphs: Glyphs
    ) -> None:
        super().__init__(id="branch-tree")
        self._compared = compared
        self._session = session
        self._prices = prices
        self._glyphs = glyphs
        self._rows: list[TreeRow] = []
        self._index: dict[str, int] = {}
        self._marks = TreeMarks()
        self._starts: dict[str, int] = {}
        """Where the texts of siblings differ, since the tree changed last."""
        self._built_for: object = None
        self._residency: dict[str, Residency] = {}
        self._models: dict[str, str] = {}
        self._folded: set[str] = set()
        self._hoisted: str | None = None
        self._cursor: str | None = None
        self._followed: str | None = None
        """The end of the open path that was scrolled to."""
        self._leaves = 0

    def on_mount(self) -> None:
        """Show which nodes are marked for comparison."""
        self._compared.listen(self._show_compared)

    def _show_compared(self) -> None:
        self._set_marks()
        self.refresh()

    @property
    def cursor(self) -> str | None:
        """The node under the cursor."""
        return self._cursor

    @property
    def rows(self) -> list[TreeRow]:
        """All rows, visible or not."""
        return self._rows

    @property
    def leaves(self) -> int:
        """Number of branches, named or not."""
        return self._leaves

    @property
    def hoisted(self) -> str | None:
        """The only subtree that is shown; None if all of the tree is."""
        return self._hoisted

    def rebuild(self) -> None:
        """Order the rows again if the tree changed, and draw them."""
        session = self._session
        if session.version == self._built_for:
            return
        tree = session.tree
        if not isinstance(self._built_for, tuple) or self._built_for[0] != session.version[0]:
            self._folded, self._hoisted, self._residency = set(), None, {}
        if self._hoisted is not None and not _is_there(session, self._hoisted):
            self._hoisted = None
        self._built_for = session.version
        self._starts = {}
        self._models = models_by_answer(tree)
        self._rows = build_tree_rows(tree, self._glyphs, folded=self._folded, hoisted=self._hoisted)
        self._index = {row.node_id: at for at, row in enumerate(self._rows)}
        leaves = tree.leaves()
        self._leaves = len(leaves)
        self._residency = {one: known for one, known in self._residency.items() if one in tree}
        self._set_marks()
        if self._cursor not in self._index:
            self._cursor = self._nearest(self._cursor)
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows))
        self.refresh()
        self.call_after_refresh(self._follow_head)

    def _follow_head(self) -> None:
        """Scroll to the end of the open path when it has moved, unless the cursor is used."""
        head = self._session.head
        if head != self._followed and not self.has_focus:
            self._followed = head
            self._show(head)

    def _set_marks(self) -> None:
        tree = self._session.tree
        self._marks = TreeMarks(
            head=tree.head,
            path=frozenset(tree.path(tree.head)),
            names=names_by_node(tree.branches()),
            running=frozenset(self._session.answers.running),
            residency=self._residency,
            marked=self._compared.ids,
            models=self._models,
        )

    def _nearest(self, node_id: str | None) -> str | None:
        """A row for a node that has none: its nearest ancestor, else HEAD."""
        tree = self._session.tree
        candidates = tree.path(node_id) if node_id is not None and node_id in tree else []
        for one in (*reversed(candidates), tree.head):
            if one in self._index:
                return one
        return self._rows[0].node_id if self._rows else None

    def refresh_running(self) -> None:
        """Draw the rows of the running answers again, which show the beginning of their text."""
        if set(self._marks.running) != set(self._session.answers.running):
            self._set_marks()
            self.refresh()
        for node_id in self._marks.running:
            self._refresh_row(node_id)

    def ask_residency(self) -> bool:
        """Ask for some of the visible leaves; True if more are to be asked for."""
        until = time.perf_counter() + RESIDENCY_S
        top = self.scroll_offset.y
        for row in self._rows[top : top + self.size.height]:
            node_id = row.node_id
            is_end = node_id in self._marks.names or not self._session.tree.children(node_id)
            if not is_end or node_id in self._marks.running:
                continue
            fresh = not self._prices.is_known(node_id)
            residency = self._prices.residency(node_id)
            if residency is not None and residency is not self._residency.get(node_id):
                self._residency[node_id] = residency
                self._refresh_row(node_id)
            if fresh and (self._prices.waiting or time.perf_counter() > until):
                return True
        return False

    def _refresh_row(self, node_id: str | None) -> None:
        if node_id in self._index:
            self.refresh_line(self._index[node_id])

    def render_line(self, y: int) -> Strip:
        """One row of the tree."""
        at = y + self.scroll_offset.y
        cells = self.scrollable_content_region.width
        style = self.visual_style
        if at >= len(self._rows) or cells < 8:
            return Strip.blank(cells, self.rich_style)
        row = self._rows[at]
        if (
            row.node_id not in self._session.tree
        ):  # another conversation was opened since the last tick
            return Strip.blank(cells, self.rich_style)
        if row.node_id == self._cursor:
            name = "cursor-focused" if self.has_focus else "cursor"
            style += self.get_visual_style(f"branches--{name}")
        line = build_tree_line(
            row,
            self._session.view(row.node_id),
            self._marks,
            self._glyphs,
            cells,
            start=self._start(row),
        )
        visual = visualize(self, to_content([line]))
        strips = Visual.to_strips(self, visual, cells, 1, style, pad=True, apply_selection=False)
        return strips[0].adjust_cell_length(cells, style.rich_style)

    def _start(self, row: TreeRow) -> int:
        """Where the text of a row differs from its siblings'; of an answer that runs its beginning."""
        session, node_id = self._session, row.node_id
        if not row.begins_branch or node_id in self._marks.running:
            return 0
        if node_id not in self._starts:
            siblings = session.tree.siblings(node_id)
            texts = [session.view(one).text for one in siblings]
            self._starts.update(zip(siblings, differences(texts), strict=True))
        return self._starts[node_id]

    COMPONENT_CLASSES: ClassVar = {"branches--cursor", "branches--cursor-focused"}

    def move_to(self, node_id: str | None) -> None:
        """Put the cursor on a node, or on its nearest visible ancestor, and show its row."""
        self.rebuild()
        target = node_id if node_id in self._index else self._nearest(node_id)
        if target is None or target == self._cursor:
            return
        old, self._cursor = self._cursor, target
        self._refresh_row(old)
        self._refresh_row(target)
        self._show_cursor()
        if self.has_focus:
            self.post_message(NeedsDrawing())  # the hints show the price of this node

    def _show_cursor(self) -> None:
        self._show(self._cursor)

    def _show(self, node_id: str | None) -> None:
        if node_id in self._index:
            row = Region(0, self._index[node_id], 1, 1)
            self.scroll_to_region(row, animate=False, immediate=True)

    def action_cursor(self, step: int) -> None:
        """Move the cursor by rows, not beyond the first and the last one."""
        at = self._index.get(self._cursor or "", 0) + step
        if self._rows:
            self.move_to(self._rows[max(0, min(at, len(self._rows) - 1))].node_id)

    def action_page(self, pages: int) -> None:
        """Move the cursor by the rows that are visible."""
        self.action_cursor(pages * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first row or the last one."""
        if self._rows:
            self.move_to(self._rows[-1 if end else 0].node_id)

    def next_branch(self, step: int) -> bool:
        """Move the cursor to the next node in the direction of `step` that has siblings, if any."""
        at = self._index.get(self._cursor or "", 0) + step
        while 0 <= at < len(self._rows):
            if self._rows[at].begins_branch:
                self.move_to(self._rows[at].node_id)
                return True
            at += step
        return False

    def action_fold(self) -> None:
        """Hide or show the nodes below the cursor."""
        if self._cursor is not None:
            self._folded ^= {self._cursor}
            self._order_again()

    def action_hoist(self) -> None:
        """Show only the subtree of the node under the cursor, or all of the tree again."""
        self._hoisted = None if self._hoisted is not None else self._cursor
        self._order_again()

    def _order_again(self) -> None:
        version = self._session.version
        self._built_for = (version[0], -1)
        self.rebuild()
        self._show_cursor()
        self.post_message(NeedsDrawing())

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; a double click goes to the node."""
        at = event.y + self.scroll_offset.y
        if at < len(self._rows):
            self.move_to(self._rows[at].node_id)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_focus(self) -> None:
        """Show the cursor in another shade."""
        self._refresh_row(self._cursor)

    def on_blur(self) -> None:
        """Show the cursor in another shade."""
        self._refresh_row(self._cursor)

    def on_resize(self) -> None:
        """Cut the rows to the new width and keep the cursor visible."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows))
        self.call_after_refresh(self._show_cursor)


class BranchPane(DrawnOnTicks, Vertical):
    """Heading and tree; shown if the conversation has several branches, or on request."""

    def __init__(
        self,
        session: TreeSession,
        prices: ForkPrices,
        compared: Marks,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._session = session
        self._glyphs = glyphs
        self._asked_for: str | None = None
        self._shown_for: object = None
        self.tree_view = BranchTreeView(session, prices, compared, glyphs)

    def compose(self) -> ComposeResult:
        """Heading above the tree."""
        yield Lines(id="branch-heading")
        yield self.tree_view

    def on_mount(self) -> None:
        """Hidden until there is something to show."""
        self.display = False

    @property
    def in_view(self) -> bool:
        """Always: `show` decides whether the pane is displayed."""
        return True

    def open(self) -> None:
        """Display the tree of the open conversation, with one branch too, and focus it."""
        self._asked_for = self._session.tree_id
        self._display()
        self.call_after_refresh(self.tree_view.focus)

    def close(self) -> None:
        """Hide a tree with a single branch that was displayed on request."""
        self._asked_for = None
        self._shown_for = None
        self._display()

    def _display(self) -> None:
        version = self._session.version
        if version == self._shown_for:
            return
        self._shown_for = version
        wanted = self._asked_for == version[0] or self._session.tree.branched
        self.display = wanted and self._session.head is not None

    def show(self, frame: Frame) -> bool:
        """Draw what changed; True while it is not known how much of the visible branches is resident."""
        self._display()
        view = self.tree_view
        if not super().in_view:
            return False
        view.rebuild()
        view.refresh_running()
        if not view.has_focus:
            view.move_to(frame.selected or frame.session.head)
        rows = len(view.rows) + 2
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows  # the stylesheet limits it
        self.query_one("#branch-heading", Lines).show_lines(
            [
                build_tree_heading(
                    view.leaves, view.hoisted is not None, self._glyphs, self.size.width
                )
            ]
        )
        return not is_busy(frame.snapshot) and view.ask_residency()


def _is_there(session: TreeSession, node_id: str) -> bool:
    return node_id in session.tree and session.tree[node_id].pruned_at is None
