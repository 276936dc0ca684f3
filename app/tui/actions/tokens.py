"""The keys of the token cursor and the tints. What is done at the cursor is in `fork_at_token.py`.

One answer has the cursor; it is then the selected message. Answers with a cursor or a tint are shown as
the text of their tokens instead of Markdown. `show` runs at every drawing of the figures, so that
messages that were mounted since are shown in the same way.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import NamedTuple

from textual.css.query import NoMatches
from textual.geometry import Offset

from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.view.heat import surprising
from app.tui.view.tints import Tint, next_tint
from app.tui.view.token_answer import (
    TokenAnswer,
    build_token_answer,
)
from app.tui.view.token_bars import build_token_bar
from app.tui.view.token_lines import next_word
from app.tui.widgets.lines import Lines
from app.tui.widgets.message import Message
from app.tui.widgets.token_view import ShownTokens
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.fork_price import ForkPrice
from engine.conversations.tree import NodeKind, NodeStatus, NodeView

_KEPT_ANSWERS = 64
"""Number of answers whose tokens are kept in memory; as many messages can be mounted."""


class TokenCursor(NamedTuple):
    """The place of the cursor: a unit of the tokens of an answer."""

    answer: TokenAnswer
    unit: int

    @property
    def token(self) -> int:
        """Number of tokens before the cursor."""
        return self.answer.units[self.unit].start

    @property
    def place(self) -> tuple[str, int]:
        """The answer's node, and the number of its tokens before the cursor."""
        return self.answer.node_id, self.token


class TokenActions:
    """The token cursor and the tint of the open conversation. Also a `Pane`: it draws its own row."""

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        layout: ScreenLayout,
        *,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._layout = layout
        self._keymap = keymap
        self._glyphs = glyphs
        self._cursor: TokenCursor | None = None
        self._moved = False
        """Whether the screen has not been scrolled to the cursor yet."""
        self._tint: Tint | None = None
        self._tinted = _ALL
        """The answer with the tint, or `_ALL` for every answer."""
        self._answers: dict[str, TokenAnswer] = {}
        self._without_tokens: set[str] = set()
        """Finished answers that cannot be tinted; asked again after the next `t`."""
        self._price: tuple[object, Future[ForkPrice] | None] = ((), None)

    @property
    def cursor(self) -> TokenCursor | None:
        """The token cursor."""
        return self._cursor

    @property
    def fork_price(self) -> ForkPrice | None:
        """The price of a fork at the token cursor; None if there is no cursor, or it is unknown."""
        return None if self._cursor is None else self._current_price(self._cursor)

    # Keys.

    async def previous(self) -> None:
        """Move the token cursor to the previous token."""
        await self._step(-1)

    async def next(self) -> None:
        """Move the token cursor to the next token."""
        await self._step(1)

    async def previous_word(self) -> None:
        """Move the token cursor to the beginning of the word, or of the one before."""
        await self._step(-1, by_word=True)

    async def next_word(self) -> None:
        """Move the token cursor to the beginning of the next word."""
        await self._step(1, by_word=True)

    async def surprise_previous(self) -> None:
        """Move the token cursor to the previous surprising token."""
        await self._to_surprise(-1)

    async def surprise_next(self) -> None:
        """Move the token cursor to the next surprising token."""
        await self._to_surprise(1)

    async def tint(self) -> None:
        """Tint the selected answer, or all answers if none is selected: by surprisal, source, not at all."""
        self._without_tokens.clear()
        await self._follow_tree()
        selected = self._transcript.selected
        target = selected.id if selected is not None else _ALL
        if selected is not None:
            self._answer(selected)  # raises if it has no tokens
        elif not any(one.kind is NodeKind.ASSISTANT for one in self._transcript.path):
            raise InvalidRequest(_NO_ANSWER)
        if self._is_tinted(target):
            self._tint = next_tint(self._tint)
        else:
            self._tint, self._tinted = next_tint(None), target
        self._sync()

    async def take_cursor(self) -> TokenCursor:
        """The token cursor; if there is none, it is set on the first token of the selected or last answer.

        Raises:
            InvalidRequest: there is no such answer, or no tokens are stored with it.
        """
        await self._follow_tree()
        return self._cursor or await self._place(1)

    def drop(self) -> bool:
        """Remove the token cursor; True if there was one. A tint remains."""
        had = self._cursor is not None
        self._cursor = None
        self._sync()
        return had

    async def point(self, node_id: str, unit: int) -> None:
        """Move the token cursor to a token that was clicked."""
        answer = self._answers.get(node_id)
        if answer is not None:
            await self._transcript.select_node(node_id, scroll=False)
            self._move(answer, unit)

    # Pane.

    @property
    def in_view(self) -> bool:
        """Always: the transcript may have mounted messages."""
        return True

    def show(self, frame: Frame) -> bool:
        """Show tokens in newly mounted messages, and the row of the cursor."""
        if self._cursor is not None or self._tint is not None:
            self._sync()
            self._scroll_to_cursor()
        return False

    # Internal: the cursor.

    @property
    def _transcript(self) -> Transcript:
        return self._screen.main.query_one(Transcript)

    async def _step(self, step: int, *, by_word: bool = False) -> None:
        await self._follow_tree()
        if self._cursor is None:
            await self._place(step)
            return
        answer, unit = self._cursor
        target = next_word(answer.units, unit, step) if by_word else unit + step
        self._move(answer, min(max(target, 0), len(answer.units) - 1))

    async def _to_surprise(self, step: int) -> None:
        await self._follow_tree()
        if self._cursor is None:
            answer, unit = await self._place(step)
            unit -= step  # the first or last token may be surprising, too
        else:
            answer, unit = self._cursor
        peaks = surprising(answer.bits)
        ahead = [at for at in peaks if (at - unit) * step > 0]
        if not ahead:
            raise InvalidRequest(
                f"No surprising token {'after' if step > 0 else 'before'} this one."
            )
        self._move(answer, min(ahead) if step > 0 else max(ahead))

    async def _follow_tree(self) -> None:
        """If the branch tree has the focus: select its node's message, where its tokens can be seen.

        Raises:
            InvalidRequest: the node is on another branch.
        """
        node_id = self._selection.node_id
        if not self._selection.in_tree or node_id is None:
            return
        if not await self._transcript.select_node(node_id, scroll=False):
            raise InvalidRequest("The message is on another branch: enter opens it.")
        self._layout.close_overlay()
        self._layout.focus_messages()
        self._sync()

    async def _place(self, step: int) -> TokenCursor:
        """Put the cursor on the first or last token of the selected, else of the last answer.

        Raises:
            InvalidRequest: there is no such answer, or no tokens are stored with it.
        """
        transcript = self._transcript
        node = transcript.selected or next(
            (one for one in reversed(transcript.path) if one.kind is NodeKind.ASSISTANT), None
        )
        if node is None:
            raise InvalidRequest(_NO_ANSWER)
        answer = self._answer(node)
        await transcript.select_node(node.id, scroll=False)
        return self._move(answer, 0 if step > 0 else len(answer.units) - 1)

    def _move(self, answer: TokenAnswer, unit: int) -> TokenCursor:
        self._cursor = cursor = TokenCursor(answer, unit)
        self._moved = True
        self._sync()
        self._screen.draw_all()  # the status bar shows the price of a fork here
        self._transcript.call_after_refresh(self._scroll_to_cursor)
        return cursor

    def _answer(self, node: NodeView) -> TokenAnswer:
        if node.status is NodeStatus.STREAMING:
            raise InvalidRequest("The answer is still being generated: stop it first.")
        found = self._answers.pop(node.id, None)
        if found is None:
            tokens = self._screen.session.tokens.of(node.id)
            found = build_token_answer(
                tokens, self._glyphs, prompt_tokens=node.n_prompt, cached_tokens=node.n_cached
            )
            while len(self._answers) >= _KEPT_ANSWERS:
                del self._answers[next(iter(self._answers))]
        self._answers[node.id] = found
        return found

    # Internal: drawing.

    def _sync(self) -> None:
        """Show what the mounted messages have to show, and the row of the cursor."""
        try:
            transcript = self._transcript
        except NoMatches:
            return
        if self._cursor is not None:
            selected = transcript.selected
            if selected is None or selected.id != self._cursor.answer.node_id:
                self._cursor = None
        for message in transcript.messages:
            message.show_tokens(self._shown_for(message))
        self._draw_bar()

    def _shown_for(self, message: Message) -> ShownTokens | None:
        node = message.node
        if self._cursor is not None and node.id == self._cursor.answer.node_id:
            tint = self._tint if self._is_tinted(node.id) else None
            return ShownTokens(self._cursor.answer, tint, self._cursor.unit)
        if not self._is_tinted(node.id) or node.kind is not NodeKind.ASSISTANT:
            return None
        if node.id not in self._screen.session.tree:
            return None  # another conversation opens, this is still shown
        if node.status is NodeStatus.STREAMING or node.id in self._without_tokens:
            return None
        try:
            return ShownTokens(self._answer(node), self._tint, None)
        except PravahaError:
            self._without_tokens.add(node.id)
            return None

    def _is_tinted(self, node_id: str) -> bool:
        """Whether the tint applies to an answer, or to all of them (`_ALL`)."""
        return self._tint is not None and self._tinted in (node_id, _ALL)

    def _draw_bar(self) -> None:
        bar = self._screen.main.query_one("#token-bar", Lines)
        bar.display = self._cursor is not None
        if self._cursor is None:
            return
        keymap = self._keymap
        hints = [hint(name, word, keymap) for name, word in _HINTS]
        price = self._current_price(self._cursor)
        cells = self._transcript.size.width - _BAR_PADDING
        bar.show_lines(
            [
                build_token_bar(
                    self._cursor.answer, self._cursor.unit, price, hints, self._glyphs, cells
                )
            ]
        )

    def _current_price(self, cursor: TokenCursor) -> ForkPrice | None:
        """The price of a fork at the cursor, computed once for each place and version of the tree.

        A server's arrives later; while the cursor moves on, the next one is not asked for.
        """
        key = (cursor.place, self._screen.session.version)
        priced, price = self._price
        if key != priced and (price is None or price.done()):
            try:
                price = self._screen.session.tokens.price(cursor.answer.node_id, at=cursor.token)
            except PravahaError:
                price = None
            self._price = priced, price = key, price
        if key != priced or price is None or not price.done() or price.exception() is not None:
            return None
        return price.result()

    def _scroll_to_cursor(self) -> None:
        """Scroll to the cursor once after each move, as soon as its tokens are laid out."""
        if self._cursor is not None and self._moved:
            node_id = self._cursor.answer.node_id
            self._moved = not self._transcript.scroll_to_token(node_id, self._cursor.unit)

    def screen_offset(self, cursor: TokenCursor) -> Offset:
        """The cell of the cursor on the screen."""
        for message in self._transcript.messages:
            if message.node.id == cursor.answer.node_id and message.token_view is not None:
                view = message.token_view
                region = view.content_region
                return Offset(
                    region.x + view.column_of(cursor.unit), region.y + view.row_of(cursor.unit)
                )
        return Offset(0, 0)


_ALL = "*"
_NO_ANSWER = "There is no answer yet."
_BAR_PADDING = 2
_HINTS = (
    ("fork", "fork"),
    ("alternatives", "alternatives"),
    ("surprise.next", "surprising"),
    ("tint", "tint"),
    ("escape", "back"),
)
