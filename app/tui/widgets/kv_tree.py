"""The prefix cache as an outline with a cursor; only the visible rows are built."""

from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from app.tui.glyphs import Glyphs
from app.tui.keys import TRIE_KEYS, bindings
from app.tui.view.trie_lines import build_trie_head, build_trie_row, in_outline
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import NeedsDrawing
from engine.api.block_detail import PrefixTree
from engine.api.snapshot import BlockMap


class KvTree(Lines, can_focus=True):
    """The chains of the prefix cache. The KV pane reads the tree and calls `read`, then `draw`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TRIE_KEYS)

    class Chosen(Message):
        """Enter was pressed on a chain."""

        def __init__(self, blocks: tuple[int, ...]) -> None:
            super().__init__()
            self.blocks = blocks

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._tree: PrefixTree | None = None
        self._blocks: BlockMap | None = None
        self._outline: list[tuple[int, int]] = []
        self._row = 0
        self._top = 0

    def read(self, tree: PrefixTree | None, blocks: BlockMap | None) -> None:
        """Take a newer tree; the cursor stays on its chain if that is still there."""
        chosen = self._first_block
        self._tree, self._blocks = tree, blocks
        self._outline = [] if tree is None else in_outline(tree)
        if tree is not None and chosen is not None:
            firsts = [tree.chains[index].first_block for index, _ in self._outline]
            self._row = firsts.index(chosen) if chosen in firsts else self._row
        self._row = max(0, min(self._row, len(self._outline) - 1))

    @property
    def _first_block(self) -> int | None:
        if self._tree is None or not self._outline:
            return None
        return self._tree.chains[self._outline[self._row][0]].first_block

    @property
    def _height(self) -> int:
        """Rows for chains, below the title."""
        return max(1, self.content_size.height - 1)

    def draw(self) -> None:
        """Draw the visible rows."""
        cells, height, tree = self.content_size.width, self._height, self._tree
        if cells <= 0:
            return
        chains = () if tree is None else tree.chains
        size = 1 if tree is None else tree.block_size
        self._top = max(0, min(self._top, self._row, len(self._outline) - height))
        self._top = max(self._top, self._row - height + 1)
        lines = [build_trie_head(tree, cells)]
        for number in range(self._top, min(self._top + height, len(self._outline))):
            index, depth = self._outline[number]
            chain = chains[index]
            known = self._blocks is not None and chain.first_block < len(self._blocks.state)
            owners = self._blocks.owners_of(chain.first_block) if known and self._blocks else ()
            lines.append(
                build_trie_row(
                    chain,
                    depth,
                    owners,
                    self._glyphs,
                    cells,
                    block_size=size,
                    selected=number == self._row,
                )
            )
        lines += [()] * (height + 1 - len(lines))
        self.show_lines(lines)

    def on_resize(self) -> None:
        """Ask for a tick."""
        self.post_message(NeedsDrawing())

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._row = max(0, min(self._row + rows, len(self._outline) - 1))
        self.post_message(NeedsDrawing())

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * self._height)

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last chain."""
        self.action_move(direction * len(self._outline))

    def action_light(self) -> None:
        """Highlight the chain's blocks in the map."""
        if self._tree is not None and self._outline:
            self.post_message(self.Chosen(self._tree.chains[self._outline[self._row][0]].blocks))
