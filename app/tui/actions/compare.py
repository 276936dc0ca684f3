"""The keys of answers side by side: expand, adopt, mark and compare."""

from collections.abc import Mapping

from app.tui.actions.tokens import TokenActions
from app.tui.chat_screen import ChatScreen
from app.tui.comparison import before_this, compare
from app.tui.fork_prices import ForkPrices
from app.tui.keys import hint
from app.tui.marks import Marks
from app.tui.panes import CHAT
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.view.price import build_price
from app.tui.widgets.cards import AskCount, CardStrip
from app.tui.widgets.compare import ComparePane
from app.tui.widgets.transcript import MessageScroll, Transcript
from engine.api.errors import InvalidRequest, PravahaError


class CompareActions:
    """Answers generated side by side, and marked messages beside each other."""

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        layout: ScreenLayout,
        *,
        marks: Marks,
        tokens: TokenActions,
        fork_prices: ForkPrices,
        keymap: Mapping[str, str],
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._layout = layout
        self._marks = marks
        self._tokens = tokens
        self._fork_prices = fork_prices
        self._keymap = keymap
        self._asked: str | None = None
        """The node that the question for the number of answers is about."""
        self._asked_at: int | None = None
        """The number of tokens of that node to keep, if its continuations were asked for."""

    # Generating answers side by side.

    async def ask_count(self) -> None:
        """Ask for the number of answers; the next key is it."""
        node_id = self._selection.target()
        self._ask(node_id, None, self._fork_prices.texts(node_id).get("regen", ""))

    async def ask_count_at_token(self) -> None:
        """Ask for the number of continuations from the token cursor; the next key is it.

        Raises:
            InvalidRequest: there is no token cursor.
        """
        tokens = self._tokens
        cursor = tokens.cursor
        if cursor is None:
            key = hint("tok.next", "", self._keymap)[0]
            raise InvalidRequest(f"There is no token cursor: {key} sets it in an answer.")
        price = tokens.fork_price
        self._ask(cursor.answer.node_id, cursor.token, build_price(price) if price else "")

    def _ask(self, node_id: str, at: int | None, price: str) -> None:
        self._asked, self._asked_at = node_id, at
        if self._layout.close_overlay():
            # The focus returns to the messages, not to the hidden tree.
            self._screen.main.set_focus(self._screen.main.query_one(MessageScroll))
        key = hint("expand" if at is None else "expand.deep", "", self._keymap)[0]
        self._screen.main.query_one(AskCount).ask(key, price)

    @property
    def pending_key(self) -> str:
        """The key that waits for a number, for the status bar; empty if there is none."""
        asking = self._screen.main.query_one(AskCount)
        return f" {asking.key}…" if asking.display else ""

    async def answer_count(self, count: int) -> None:
        """Generate the number of answers that was asked for."""
        try:
            if self._asked is not None and self._asked_at is not None:
                await self._continue(self._asked, self._asked_at, count)
            else:
                await self.expand(count, self._asked)
        except PravahaError as error:
            self._screen.notify_safely(str(error), "warning")

    async def expand(self, count: int, node_id: str | None) -> None:
        """Generate `count` answers side by side to a message, or beside an answer.

        Raises:
            PravahaError: as `Branches.expand`.
        """
        await self._open_strip(self._screen.session.branches.expand(count, node_id))

    async def _continue(self, node_id: str, at: int, count: int) -> None:
        """Generate `count` answers side by side that begin with the first `at` tokens of one."""
        ids = self._screen.session.branches.expand_at_token(node_id, at, count)
        self._tokens.drop()
        self._screen.main.query_one(Transcript).clear_selection()
        await self._open_strip(ids)

    async def _open_strip(self, ids: list[str]) -> None:
        await self._screen.show_chat()
        self._strip.open(self._screen.session, ids)

    async def adopt_card(self) -> None:
        """Open the selected card's branch and close the strip; the others stay as siblings."""
        node_id = self._strip.selected
        if node_id is not None:
            self._screen.session.branches.adopt(node_id)
            self._strip.close()
            await self._screen.show_chat()
            self._layout.focus_prompt()

    async def prune_card(self) -> None:
        """Prune the selected card's answer; `undo` brings it back."""
        node_id = self._strip.selected
        if node_id is not None:
            self._screen.session.branches.prune(node_id)
            await self._screen.show_chat()
            if not self._strip.node_ids:
                await self.close_cards()

    async def stop_card(self) -> None:
        """Stop the selected card's answer; its text is kept."""
        self._screen.session.answers.stop(self._strip.selected)
        self._screen.wake()

    async def close_cards(self) -> None:
        """Close the strip; the answers go on."""
        self._strip.close()
        self._focus_messages()

    # Comparing.

    async def mark(self) -> None:
        """Mark the selected node, or remove its mark."""
        node_id = self._selection.target()
        self._marks.keep(self._screen.session.tree.__contains__)
        self._marks.toggle(node_id)

    async def compare(self) -> None:
        """Compare the marked messages.

        One marked message is compared with the selected one, else with the last one. If nothing is
        marked, that one is compared with the sibling before it.
        """
        self._screen.main.query_one(ComparePane).open(
            compare(self._screen.session, self._compared())
        )
        if self._layout.pane != "compare":
            self._layout.open_pane("compare")

    async def adopt_column(self) -> None:
        """Open the branch of the selected column and close the comparison."""
        node_id = self._screen.main.query_one(ComparePane).selected
        if node_id is not None:
            self._screen.session.branches.adopt(node_id)
            self._marks.clear()
            self._strip.close()
            self._layout.open_pane(CHAT)
            await self._screen.show_chat()

    async def close_comparison(self) -> None:
        """Close the comparison; the marks stay."""
        self._layout.open_pane(CHAT)
        self._focus_messages()

    def _compared(self) -> list[str]:
        session = self._screen.session
        self._marks.keep(session.tree.__contains__)
        tree = session.tree
        marked = [one for one in self._marks.ids if tree[one].pruned_at is None]
        if len(marked) > 1:
            return marked
        current = session.view(self._selection.target())
        other = marked[0] if marked and marked[0] != current.id else before_this(session, current)
        if other is None:
            raise InvalidRequest(
                "Nothing to compare: mark messages with space, or generate another answer with r."
            )
        return [other, current.id]

    # Internal.

    def _focus_messages(self) -> None:
        """Focus the cards if they are open, else the messages."""
        if self._strip.is_open:
            self._strip.focus()
        else:
            self._layout.focus_messages()

    @property
    def _strip(self) -> CardStrip:
        return self._screen.main.query_one(CardStrip)
