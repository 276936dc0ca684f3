"""The keys of the token cursor, the tints and the alternatives.

One answer has the cursor; it is then the selected message. Answers with a cursor or a tint are shown as
the text of their tokens instead of Markdown. `show` runs at every drawing of the figures, so that
messages that were mounted since are shown in the same way.
"""

from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from textual.css.query import NoMatches
from textual.geometry import Offset

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.view.heat import surprising
from app.tui.view.tints import Tint, next_tint
from app.tui.view.token_answer import (
    Alternative,
    TokenAnswer,
    build_alternatives,
    build_token_answer,
)
from app.tui.view.token_bars import build_token_bar
from app.tui.view.token_lines import next_word
from app.tui.widgets.alternatives import AlternativesScreen
from app.tui.widgets.lines import Lines
from app.tui.widgets.message import Message
from app.tui.widgets.token_view import ShownTokens
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.fork_price import ForkPrice
from engine.api.request import TopLogprob
from engine.conversations.next_tokens import NextTokens
from engine.conversations.tree import NodeKind, NodeStatus, NodeView

if TYPE_CHECKING:
    from app.tui.app import PravahaApp

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


class TokenActions:
    """The token cursor and the tint of the open conversation. Also a `Pane`: it draws its own row."""

    def __init__(self, app: "PravahaApp", glyphs: Glyphs) -> None:
        self._app = app
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
        self._computing: dict[tuple[str, int], NextTokens] = {}
        self._computed: dict[tuple[str, int], tuple[TopLogprob, ...]] = {}
        self._popup: tuple[tuple[str, int], AlternativesScreen] | None = None

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

    async def fork(self) -> bool:
        """Begin another answer at the token cursor; False if there is no cursor."""
        if self._cursor is None:
            return False
        await self._fork(None)
        return True

    async def alternatives(self) -> None:
        """Show the most likely tokens at the token cursor."""
        await self._follow_tree()
        cursor = self._cursor or await self._place(1)
        known = cursor.answer.topk[cursor.unit] or self._computed.get(_place_of(cursor), ())
        rows = self._rows(cursor, known) if known else None
        popup = AlternativesScreen(rows, self._screen_offset(cursor), self._glyphs)
        if rows is None:
            self._compute(cursor)
        self._popup = (_place_of(cursor), popup)
        self._app.push_screen(popup, self._chosen)

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
        """Show tokens in newly mounted messages, the row of the cursor, and computed alternatives."""
        self._poll()
        if self._cursor is not None or self._tint is not None:
            self._sync()
            self._scroll_to_cursor()
        return bool(self._computing)  # a refusal wakes nobody

    # Internal: the cursor.

    @property
    def _transcript(self) -> Transcript:
        return self._app.screen_stack[0].query_one(Transcript)

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
        node_id = self._app.selected_node
        if not self._app.tree_focused or node_id is None:
            return
        if not await self._transcript.select_node(node_id, scroll=False):
            raise InvalidRequest("The message is on another branch: enter opens it.")
        self._app.close_overlay()
        self._app.action_navigate()
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
        self._app.call_after_refresh(self._scroll_to_cursor)
        return cursor

    def _answer(self, node: NodeView) -> TokenAnswer:
        if node.status is NodeStatus.STREAMING:
            raise InvalidRequest("The answer is still being generated: stop it first.")
        found = self._answers.pop(node.id, None)
        if found is None:
            tokens = self._app.session.tokens.of(node.id)
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
        if node.id not in self._app.session.tree:  # another conversation opens, this is still shown
            return None
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
        bar = self._app.screen_stack[0].query_one("#token-bar", Lines)
        bar.display = self._cursor is not None
        if self._cursor is None:
            return
        keymap = self._app.keymap
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
        key = (_place_of(cursor), self._app.session.version)
        priced, price = self._price
        if key != priced and (price is None or price.done()):
            try:
                price = self._app.session.tokens.price(cursor.answer.node_id, at=cursor.token)
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

    def _screen_offset(self, cursor: TokenCursor) -> Offset:
        """The cell of the cursor on the screen."""
        for message in self._transcript.messages:
            if message.node.id == cursor.answer.node_id and message.token_view is not None:
                view = message.token_view
                region = view.content_region
                return Offset(
                    region.x + view.column_of(cursor.unit), region.y + view.row_of(cursor.unit)
                )
        return Offset(0, 0)

    # Internal: alternatives and forks.

    async def _fork(self, forced: int | None) -> None:
        cursor = self._cursor
        if cursor is None:
            return
        self._app.session.branches.fork_at_token(cursor.answer.node_id, cursor.token, forced=forced)
        self._cursor = None
        self._transcript.clear_selection()
        await self._app.show_chat()
        self._sync()

    async def _chosen(self, token_id: int | None) -> None:
        self._popup = None
        if token_id is None:
            return
        try:
            await self._fork(token_id)
        except PravahaError as error:
            self._app.notify_safely(str(error), "warning")

    def _rows(self, cursor: TokenCursor, topk: tuple[TopLogprob, ...]) -> tuple[Alternative, ...]:
        texts = [self._app.client.detokenize([one.token_id], skip_special=False) for one in topk]
        return build_alternatives(cursor.answer, cursor.unit, topk, texts, self._glyphs)

    def _compute(self, cursor: TokenCursor) -> None:
        place = _place_of(cursor)
        if place not in self._computing:
            node_id, at = place
            self._computing[place] = self._app.session.tokens.next_tokens(node_id, at)
        self._app.frame_clock.wake()

    def _poll(self) -> None:
        """Take the results of the engine; show them if their popup is still open."""
        for place, request in list(self._computing.items()):
            try:
                found = request.poll()
            except PravahaError as error:
                del self._computing[place]
                self._app.notify_safely(f"No alternatives: {error}", "warning")
                if self._popup is not None and self._popup[0] == place:
                    self._popup[1].dismiss(None)
                continue
            if found is None:
                continue
            del self._computing[place]
            self._computed[place] = found
            if self._popup is not None and self._popup[0] == place and self._cursor is not None:
                self._popup[1].show_rows(self._rows(self._cursor, found))


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


def _place_of(cursor: TokenCursor) -> tuple[str, int]:
    return cursor.answer.node_id, cursor.token
