"""Fork at a token: another answer that begins with the tokens before the token cursor.

`fork` (the key f) continues after them; `alternatives` (the key .) shows the tokens that were likely at the
cursor, and continues after the one that is chosen. The cursor itself is in `tokens.py`; several continuations
side by side are in `compare.py`. `Branches.fork_at_token` of the session adds the answer and submits it.
"""

from app.tui.actions.tokens import TokenActions, TokenCursor
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.token_answer import Alternative, build_alternatives
from app.tui.widgets.alternatives import AlternativesScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import PravahaError
from engine.api.request import TopLogprob
from engine.conversations.next_tokens import NextTokens


class ForkAtToken:
    """Forks at the token cursor. Also a pane without a widget: `show` takes computed alternatives."""

    in_view = True

    def __init__(self, screen: ChatScreen, tokens: TokenActions, glyphs: Glyphs) -> None:
        self._screen = screen
        self._tokens = tokens
        self._glyphs = glyphs
        self._computing: dict[tuple[str, int], NextTokens] = {}
        self._computed: dict[tuple[str, int], tuple[TopLogprob, ...]] = {}
        self._popup: tuple[tuple[str, int], AlternativesScreen] | None = None

    async def fork(self) -> bool:
        """Begin another answer at the token cursor; False if there is no cursor."""
        if self._tokens.cursor is None:
            return False
        await self._fork(None)
        return True

    async def alternatives(self) -> None:
        """Show the most likely tokens at the token cursor."""
        cursor = await self._tokens.take_cursor()
        known = cursor.answer.topk[cursor.unit] or self._computed.get(cursor.place, ())
        rows = self._rows(cursor, known) if known else None
        popup = AlternativesScreen(rows, self._tokens.screen_offset(cursor), self._glyphs)
        if rows is None:
            self._compute(cursor)
        self._popup = (cursor.place, popup)
        self._screen.open_dialog(popup, self._chosen)

    def show(self, frame: Frame) -> bool:
        """Show alternatives that the engine has computed; True while some are expected."""
        self._poll()
        return bool(self._computing)  # a refusal wakes nobody

    async def _fork(self, forced: int | None) -> None:
        """Fork at the cursor.

        Args:
            forced: the token there; None leaves it to the sampler.
        """
        cursor = self._tokens.cursor
        if cursor is None:
            return
        branches = self._screen.session.branches
        branches.fork_at_token(cursor.answer.node_id, cursor.token, forced=forced)
        self._screen.main.query_one(Transcript).clear_selection()
        await self._screen.show_chat()
        self._tokens.drop()

    async def _chosen(self, token_id: int | None) -> None:
        self._popup = None
        if token_id is None:
            return
        try:
            await self._fork(token_id)
        except PravahaError as error:
            self._screen.notify_safely(str(error), "warning")

    def _rows(self, cursor: TokenCursor, topk: tuple[TopLogprob, ...]) -> tuple[Alternative, ...]:
        tokens = self._screen.session.tokens
        texts = tokens.texts_of(cursor.answer.node_id, [one.token_id for one in topk])
        return build_alternatives(cursor.answer, cursor.unit, topk, texts, self._glyphs)

    def _compute(self, cursor: TokenCursor) -> None:
        if cursor.place not in self._computing:
            self._computing[cursor.place] = self._screen.session.tokens.next_tokens(*cursor.place)
        self._screen.wake()

    def _poll(self) -> None:
        """Take the results of the engine; show them if their popup is still open."""
        for place, request in list(self._computing.items()):
            open_here = self._popup is not None and self._popup[0] == place
            try:
                found = request.poll()
            except PravahaError as error:
                del self._computing[place]
                self._screen.notify_safely(f"No alternatives: {error}", "warning")
                if self._popup is not None and open_here:
                    self._popup[1].dismiss(None)
                continue
            if found is None:
                continue
            del self._computing[place]
            self._computed[place] = found
            if self._popup is not None and open_here and self._tokens.cursor is not None:
                self._popup[1].show_rows(self._rows(self._tokens.cursor, found))
