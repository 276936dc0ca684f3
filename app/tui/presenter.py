"""One tick of the screen: pulls new data from session and engine and passes it to the visible widgets.

Guard: costs microseconds if nothing changed; widgets compare before they draw. Nothing here may wait for
the engine. While the engine works, text is drawn on every tick but figures only every `FIGURES_S`, to
leave processor time to the engine.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from app.tui.glyphs import Glyphs
from app.tui.view.bars import StatusFacts, build_header
from app.tui.view.mood import MoodState, MoodTracker
from app.tui.view.spans import Line, Span, fit
from app.tui.view.stats import History, is_busy
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.lines import Lines
from app.tui.widgets.loading import LoadingView
from app.tui.widgets.stats import StatsPane
from app.tui.widgets.status_bar import StatusBar
from app.tui.widgets.transcript import Transcript
from app.tui.widgets.vitals import Vitals
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus

if TYPE_CHECKING:
    from textual.screen import Screen


FIGURES_S = 0.25
"""Seconds between two drawings of the figures while the engine works."""
CROWDED_FIGURES_S = 1.0
"""The same while many requests run."""
CROWD = 8
"""Number of running requests from which on less is drawn, to leave processor time to the engine."""


def build_queued(queued: Sequence[str], glyphs: Glyphs, cells: int) -> list[Line]:
    """Messages that wait for the running answer, the newest last."""
    rows: list[Line] = [
        (
            Span(f"{glyphs.queued} ", "$warning"),
            Span(fit(" ".join(text.split()), max(8, cells - 6)), "$muted"),
        )
        for text in queued[-3:]
    ]
    if rows:
        rows.append((Span("  esc takes the last one back", "$faint"),))
    return rows


class Presenter:
    """Draws the main screen from the session and the engine's snapshot.

    Args:
        screen: the main screen, mounted.
        on_settled: called after an answer has finished, to refresh lists.
        mode: returns the keyboard mode, `PROMPT` or `NAVIGATE`.
        hints: returns the keys to show in the status bar.
        server: the address of the engine's server; None for an engine in this process.
    """

    def __init__(
        self,
        screen: "Screen[object]",
        client: EngineClient,
        session: TreeSession,
        glyphs: Glyphs,
        *,
        avatars: Sequence[Avatar],
        on_settled: Callable[[], None],
        mode: Callable[[], str],
        hints: Callable[[], Sequence[tuple[str, str, str]]],
        server: str | None,
    ) -> None:
        self._screen = screen
        self._client = client
        self._session = session
        self._glyphs = glyphs
        self._avatars = avatars
        self._on_settled = on_settled
        self._mode = mode
        self._hints = hints
        self._server = server
        self._tracker = MoodTracker()
        self._epoch = -1
        self._text_arrived = False
        self._drawn_at = float("-inf")
        self._drawn_for: tuple[object, ...] = ()
        self._moving = False
        self.history = History()
        self.snapshot = client.snapshot()

    @property
    def awaits_first_text(self) -> bool:
        """Whether the open conversation's answer runs and none of its text has been drawn."""
        return self._session.generating and not self._text_arrived

    @property
    def crowded(self) -> bool:
        """Whether so many requests run that less should be drawn."""
        return self.snapshot.running >= CROWD

    async def tick(self, now: float) -> bool:
        """Draw what changed; True while further changes are expected."""
        deltas = self._session.pump()
        self.snapshot = snapshot = self._client.snapshot()
        self._text_arrived &= self._session.generating
        for delta in deltas:
            if delta.text or delta.status is not NodeStatus.STREAMING:
                self._text_arrived = delta.status is NodeStatus.STREAMING
        if deltas:
            transcript = self._screen.query_one(Transcript)
            await transcript.apply(deltas, self._session.path, crowded=self.crowded)
            if any(delta.status is not NodeStatus.STREAMING for delta in deltas):
                self._on_settled()
        if self._figures_due(snapshot, now):
            self.history.add(now, snapshot)
            self._moving = self._draw(snapshot, self._tracker.advance(snapshot, now), now)
        working = is_busy(snapshot) or snapshot.state in (EngineState.LOADING, EngineState.DRAINING)
        busy = self._session.generating or self._session.saving
        return bool(deltas) or working or self._moving or busy

    def draw_all(self) -> None:
        """Draw the figures at the next tick too, as after a pane was opened or resized."""
        self._drawn_at = float("-inf")

    def _figures_due(self, snapshot: EngineSnapshot, now: float) -> bool:
        # Show changes by keys and events immediately.
        session = self._session
        about = (
            snapshot.state, session.generating, session.queued, session.unsaved, self._mode(),
        )  # fmt: skip
        pause = CROWDED_FIGURES_S if self.crowded else FIGURES_S
        if is_busy(snapshot) and about == self._drawn_for and now - self._drawn_at < pause:
            return False
        self._drawn_at, self._drawn_for = now, about
        return True

    def _draw(self, snapshot: EngineSnapshot, state: MoodState, now: float) -> bool:
        screen, glyphs = self._screen, self._glyphs
        cells = screen.size.width
        header = build_header(snapshot, self._session.title, glyphs, cells, server=self._server)
        screen.query_one("#header", Lines).show([header])
        facts = StatusFacts(
            mode=self._mode(),
            context_used=self._session.context_used(),
            generating=self._session.generating,
            hints=self._hints(),
            unsaved=self._session.unsaved is not None,
        )
        screen.query_one(StatusBar).show_status(snapshot, facts, glyphs)
        queued = screen.query_one("#queued", Lines)
        queued.show(build_queued(self._session.queued, glyphs, queued.size.width or cells))
        queued.display = bool(self._session.queued)
        moving = False
        for avatar in self._avatars:
            if _visible(avatar):
                moving |= avatar.show(state, snapshot, now)
        welcome = screen.query_one(LoadingView)
        if _visible(welcome):
            welcome.show(snapshot)
        stats = screen.query_one(StatsPane)
        if _visible(stats):
            stats.show(snapshot, self.history)
        vitals = screen.query_one(Vitals)
        if _visible(vitals):
            vitals.show(snapshot, self.history, state)
        self._draw_blocks(snapshot)
        return moving

    def _draw_blocks(self, snapshot: EngineSnapshot) -> None:
        try:
            pane = self._screen.query_one(KvPane)
        except NoMatches:
            return
        if not _visible(pane):
            return
        blocks = self._client.blocks(self._epoch)
        if blocks is not None:
            self._epoch = blocks.epoch
        pane.show(snapshot.blocks, blocks, self._session.request_id)


def _visible(widget: Avatar | LoadingView | StatsPane | Vitals | KvPane) -> bool:
    """Whether the widget and all its ancestors are displayed and it has a size."""
    return (
        widget.is_on_screen
        and widget.size.area > 0
        and all(
            ancestor.display
            for ancestor in widget.ancestors_with_self
            if hasattr(ancestor, "display")
        )
    )
