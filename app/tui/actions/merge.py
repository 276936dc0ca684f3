"""Merging another branch into the open path: which branch, which kind, and what each kind costs."""

from app.slash.arguments import read_merge
from app.slash.names import meant
from app.text.safe_text import safe_line
from app.tui.chat_screen import ChatScreen
from app.tui.fork_prices import ForkPrices
from app.tui.selection import Selection
from app.tui.view.spans import Span
from app.tui.widgets.choice import Choice, ChoiceScreen
from app.tui.widgets.pick import PickScreen
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.merging import MergeKind
from engine.conversations.node_words import ROLES, first_words

_KINDS: dict[str, tuple[MergeKind, str, str]] = {
    "g": ("graft", "Graft", "Copy the messages of the other branch after this one."),
    "s": (
        "summary",
        "Summary",
        "The model summarises the other branch; later prompts contain that.",
    ),
    "c": ("pick", "Cherry-pick", "Copy the one answer beside the last answer of this branch."),
}


class MergeActions:
    """The key and the command of merging."""

    def __init__(self, screen: ChatScreen, selection: Selection, fork_prices: ForkPrices) -> None:
        self._screen = screen
        self._selection = selection
        self._fork_prices = fork_prices

    def open(self) -> None:
        """Ask for the kind of merging the branch of the tree's node; on the open path first for the branch.

        Raises:
            InvalidRequest: there is no other branch.
        """
        screen = self._screen
        node_id = self._selection.node_id
        if node_id is not None and node_id not in screen.session.tree.path(screen.session.head):
            self.ask(node_id)
            return
        others = screen.session.merging.other_branches()
        if not others:
            raise InvalidRequest("There is no other branch to merge.")
        if len(others) == 1:
            self.ask(others[0])
            return

        def picked(node_id: str | None) -> None:
            if node_id is not None and self._is_open(node_id):
                self.ask(node_id)

        items = [(node_id, [self._row(node_id)]) for node_id in others]
        screen.open_dialog(PickScreen("Merge which branch?", items), picked)

    def ask(self, node_id: str) -> None:
        """Ask how to merge the branch of a node, with the cost of each kind, and do it."""
        screen = self._screen

        async def chosen(key: str | None) -> None:
            if key is not None and self._is_open(node_id):
                await self._merge(node_id, _KINDS[key][0])

        choices = [
            Choice(key, name, (effect, self._cost(node_id, kind)))
            for key, (kind, name, effect) in _KINDS.items()
        ]
        other = safe_line(first_words(screen.session.view(node_id), 60))
        screen.open_dialog(ChoiceScreen("Merge into this branch", (other,), choices), chosen)

    def _is_open(self, node_id: str) -> bool:
        """Whether the open conversation is still that of the node; else a notification says so."""
        if node_id in self._screen.session.tree:
            return True
        self._screen.notify_safely("Another conversation was opened meanwhile.", "warning")
        return False

    async def run(self, argument: str) -> None:
        """`/merge [KIND] [BRANCH]`: ask for what is missing.

        Raises:
            InvalidRequest: there is no such branch.
        """
        kind, name = read_merge(argument)
        session = self._screen.session
        if not name:
            others = session.merging.other_branches()
            if kind is None or len(others) != 1:
                self.open()
            else:
                await self._merge(others[0], kind)
            return
        branches = session.tree.branches()
        node_id = branches[meant(name, branches, "branch")]
        if kind is None:
            self.ask(node_id)
        else:
            await self._merge(node_id, kind)

    async def _merge(self, node_id: str, kind: MergeKind) -> None:
        try:
            self._screen.notify_safely(self._screen.session.merging.merge(node_id, kind))
        except PravahaError as error:
            self._screen.notify_safely(str(error), "warning")
        await self._screen.show_chat()

    def _cost(self, node_id: str, kind: MergeKind) -> str:
        try:
            price = self._fork_prices.price(node_id)
            cost = self._screen.session.merging.cost(node_id, kind, price)
        except PravahaError as error:
            return f"The cost is not known: {safe_line(str(error))}"
        recomputed, total = (f"{n:,}".replace(",", " ") for n in (cost.recomputed, cost.total))
        return f"Only the common prefix shares KV: {recomputed} of {total} tokens recomputed."

    def _row(self, node_id: str) -> tuple[Span, ...]:
        session = self._screen.session
        node = session.view(node_id)
        name = session.tree.branch_at(node_id)
        label = (Span(f"{safe_line(name)}  ", "bold $accent"),) if name else ()
        text = Span(safe_line(first_words(node, 70)), "$muted")
        return (*label, Span(f"{ROLES[node.kind]}: ", "$faint"), text)
