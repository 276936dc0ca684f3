"""`StatusHints`: the key hints of the status bar as they are now. `hints.py` has the tables."""

from collections.abc import Mapping, Sequence

from app.tui.action_groups import ActionGroups
from app.tui.chat_screen import ChatScreen
from app.tui.drawing import Drawing
from app.tui.fork_prices import ForkPrices
from app.tui.hints import PRICED, build_hints_of, focused_pane
from app.tui.marks import Marks
from app.tui.selection import Selection
from app.tui.view.key_hints import KeyHint
from app.tui.view.price import build_price


class StatusHints:
    """Collects what the hints depend on."""

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        drawing: Drawing,
        actions: ActionGroups,
        *,
        marks: Marks,
        fork_prices: ForkPrices,
        keymap: Mapping[str, str],
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._drawing = drawing
        self._actions = actions
        self._marks = marks
        self._fork_prices = fork_prices
        self._keymap = keymap

    def current(self) -> Sequence[KeyHint]:
        """The hints in the order of their importance."""
        session, selected = self._screen.session, self._selection.node_id
        pane = focused_pane(
            self._screen.main.focused, selected=selected is not None, empty=session.head is None
        )
        prices: dict[str, str] = {}
        if pane in PRICED:
            prices = self._fork_prices.texts(selected or session.head)
            if self._actions.tokens.cursor is not None and not self._selection.in_tree:
                at_token = self._actions.tokens.fork_price
                prices["fork"] = build_price(at_token) if at_token is not None else ""
        return build_hints_of(
            pane,
            self._keymap,
            generating=session.answers.generating,
            in_past=self._drawing.in_past,
            marked=len(self._marks),
            waiting=self._actions.agents.num_waiting,
            running=self._actions.agents.num_active,
            indexing=self._actions.sources.job_hint,
            prices=prices,
        )
