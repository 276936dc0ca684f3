"""Answers generated side by side: the strip of cards above the prompt, and the question for their number."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message as Event
from textual.widget import Widget

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import CARD_KEYS, COUNT_KEYS, bindings
from app.tui.marks import Marks
from app.tui.view.cards import (
    CardFacts,
    build_ask_count,
    build_card,
    build_cards_head,
    card_page,
)
from app.tui.view.spans import Span
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks, NeedsDrawing
from engine.conversations.branches import MAX_EXPANSION
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus, NodeView

_PADDING = 2
"""Cells of the row above the cards that stay empty at its ends."""


class Card(Lines):
    """One answer; a click selects it, a second one adopts it."""

    def __init__(self, place: int) -> None:
        super().__init__(classes="card")
        self._place = place
        self.display = False

    class Clicked(Event):
        """Clicked, `times` in a row."""

        def __init__(self, place: int, times: int) -> None:
            super().__init__()
            self.place = place
            self.times = times

    def on_click(self, event: events.Click) -> None:
        """Report it to the strip."""
        self.post_message(self.Clicked(self._place, event.chain))


class CardStrip(DrawnOnTicks, Vertical, can_focus=True):
    """Sibling answers that stream together, as many side by side as fit; see `open`.

    Hidden while it has no answers of the open conversation. Pruned answers are left out, and are back
    after an undo.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(CARD_KEYS)

    def __init__(self, glyphs: Glyphs, marks: Marks, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs
        self._marks = marks
        self._session: TreeSession | None = None
        self._ids: tuple[str, ...] = ()
        self._selected = 0
        self._start = 0
        # Perplexities of finished answers: those of running ones are computed for each frame.
        self._final: dict[str, float | None] = {}

    def compose(self) -> ComposeResult:
        """A row of figures above as many cards as there can be."""
        yield Lines(id="cards-head")
        with Horizontal(id="cards-row"):
            for place in range(MAX_EXPANSION):
                yield Card(place)

    def open(self, session: TreeSession, node_ids: Sequence[str]) -> None:
        """Show these answers of the session's open conversation and take the focus."""
        self._session = session
        self._ids = tuple(node_ids)
        self._selected = 0
        self._final.clear()
        self.screen.add_class("-cards")
        self.call_after_refresh(self.focus)
        self.post_message(NeedsDrawing())

    def close(self) -> None:
        """Hide the strip; the answers go on."""
        self.screen.remove_class("-cards")
        self._ids = ()

    @property
    def is_open(self) -> bool:
        """Whether the strip has answers; it may be hidden behind a pane."""
        return bool(self._ids)

    @property
    def selected(self) -> str | None:
        """The selected answer's node id; None if the strip is empty."""
        nodes = self._answers()
        return nodes[min(self._selected, len(nodes) - 1)].id if nodes else None

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The answers in the strip."""
        return tuple(node.id for node in self._answers())

    def show(self, frame: Frame) -> bool:
        """Draw the cards that changed."""
        nodes = self._answers()
        if not nodes:
            self.close()
            return False
        cells = self.size.width
        self._selected = min(self._selected, len(nodes) - 1)
        page = card_page(len(nodes), self._selected, cells)
        self._start = page.start
        hints = tuple(
            span
            for key, word in (("enter", "adopt"), ("D", "prune"), ("s", "stop"), ("esc", "close"))
            for span in (Span(f" {key}", "$accent"), Span(f" {word} ", "$muted"))
        )
        head = build_cards_head(
            nodes, page, self._glyphs, cells - _PADDING, hints if cells >= 100 else ()
        )
        self.query_one("#cards-head", Lines).show_lines([head])
        path = set(frame.session.tree.path(frame.session.head))
        for place, card in enumerate(self.query(Card)):
            index = page.start + place
            card.display = index < page.end
            if not card.display:
                continue
            node = nodes[index]
            card.set_class(index == self._selected, "-selected")
            facts = CardFacts(
                index + 1,
                node,
                node.id in path,
                self._perplexity(frame.session, node),
                node.id in self._marks,
            )
            room = card.scrollable_content_region
            if room.width > 0 and room.height > 0:
                card.show_lines(build_card(facts, room.width, room.height, self._glyphs))
            else:  # shown for the first time: it has a size after the next layout
                self.call_after_refresh(self.post_message, NeedsDrawing())
        return False

    def action_move(self, steps: int) -> None:
        """Select the next or previous card."""
        self._select(self._selected + steps)

    def on_key(self, event: events.Key) -> None:
        """A digit selects the card of that number."""
        if event.character is not None and event.character in "123456789":
            event.stop()
            event.prevent_default()
            if int(event.character) <= len(self._answers()):
                self._select(int(event.character) - 1)

    def on_card_clicked(self, event: Card.Clicked) -> None:
        """Select the card; with a second click, adopt its answer."""
        event.stop()
        self._select(self._start + event.place)
        self.focus()
        if event.times == 2:
            self.call_later(self.run_action, "app.perform('compare','adopt_card')")

    def _select(self, index: int) -> None:
        self._selected = max(0, min(index, len(self._answers()) - 1))
        self.post_message(NeedsDrawing())

    def _answers(self) -> list[NodeView]:
        session = self._session
        if session is None:
            return []
        tree = session.tree
        return [
            session.view(one) for one in self._ids if one in tree and tree[one].pruned_at is None
        ]

    def _perplexity(self, session: TreeSession, node: NodeView) -> float | None:
        if node.status is NodeStatus.STREAMING:
            return session.tokens.perplexity(node.id)
        if node.id not in self._final:
            self._final[node.id] = session.tokens.perplexity(node.id)
        return self._final[node.id]


class AskCount(Lines, can_focus=True):
    """The question after `x` or `X`: a digit answers it, Esc or any other key drops it.

    Attributes:
        key: the key that asked.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(COUNT_KEYS)

    class Answered(Event):
        """A number was typed."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._glyphs = glyphs
        self._focused_before: Widget | None = None
        self.display = False
        self.key = ""

    def ask(self, key: str, price: str) -> None:
        """Show the question.

        Args:
            key: the key that asked.
            price: what is computed once for all answers; empty if unknown.
        """
        self.key = key
        self.show_lines([build_ask_count(key, MAX_EXPANSION, price, self._glyphs)])
        self.display = True
        self._focused_before = self.screen.focused
        self.focus()

    def on_key(self, event: events.Key) -> None:
        """Answer or drop the question; the dropping key keeps its own meaning."""
        character = event.character or ""
        if character in tuple("23456789"):
            event.stop()
            event.prevent_default()
            self.action_drop()
            self.post_message(self.Answered(int(character)))
        elif event.key != "escape":
            self.action_drop()

    def on_blur(self) -> None:
        """Another widget was focused: drop the question."""
        self.display = False

    def action_drop(self) -> None:
        """Drop the question; the focus goes back to where it was."""
        self.display = False
        self.screen.set_focus(self._focused_before)
