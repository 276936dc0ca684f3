"""One tick of the screen: pulls new data from session and engine and passes it to the visible panes.

Guard: costs microseconds if nothing changed; panes compare before they draw. Nothing here may wait for
the engine. While the engine works, or something only moves, text is drawn on every tick but figures only
every `FIGURES_S`, to leave processor time to the engine; what shows the blocks of the KV pool as often as its
governor allows.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from time import thread_time

from app.tui.engine_history import EngineHistory, as_client
from app.tui.frame import Frame, LivePane, Pane
from app.tui.map_governor import Drew, MapGovernor
from app.tui.view.key_hints import KeyHint
from app.tui.view.mood import MoodTracker
from app.tui.view.stats import History, is_busy
from app.tui.widgets.transcript import Transcript
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus

FIGURES_S = 0.25
"""Seconds between two drawings of the figures while the engine works, or while only the avatar moves."""
CROWDED_FIGURES_S = 1.0
"""The same while many requests run."""
CROWD = 8
"""Number of running requests from which on less is drawn, to leave processor time to the engine."""


class Presenter:
    """Draws the main screen from the session and the engine's snapshot.

    Args:
        transcript: shows the new text of every tick.
        panes: drawn from a `Frame` when the figures are due.
        streams: panes that show the text of answers: drawn on every tick with new text, too.
        live: the KV map, drawn while blocks change, too.
        written: returns the number of bytes written to the terminal since the start.
        on_settled: called after an answer has finished, to refresh lists.
        mode: returns the keyboard mode, `PROMPT` or `NAVIGATE`.
        hints: returns the keys to show in the status bar.
        server: the address of the engine's server; None for an engine in this process.
        serving: returns the address at which the engine of this process is served, None if it is not.
        retry_key: regenerates an answer.
        wall_clock: seconds since the epoch.
        animate: whether the avatar moves.
    """

    def __init__(
        self,
        client: EngineClient,
        session: TreeSession,
        *,
        transcript: Transcript,
        panes: Sequence[Pane],
        streams: Sequence[Pane],
        live: LivePane,
        written: Callable[[], int],
        on_settled: Callable[[], None],
        mode: Callable[[], str],
        hints: Callable[[], Sequence[KeyHint]],
        server: str | None,
        serving: Callable[[], str | None],
        retry_key: str,
        wall_clock: Callable[[], float],
        animate: bool,
    ) -> None:
        self._client = client
        self._session = session
        self._transcript = transcript
        self._panes = panes
        self._streams = streams
        self._live = live
        self._written = written
        self._on_settled = on_settled
        self._mode = mode
        self._hints = hints
        self._server = server
        self._serving = serving
        self._retry_key = retry_key
        self._wall_clock = wall_clock
        self._tracker = MoodTracker(animate=animate)
        self._text_arrived = False
        self._drawn_for: tuple[object, ...] = ()
        self._drawn_snapshot: EngineSnapshot | None = None
        self._moving = False
        self._hurried = True  # the figures were drawn because something happened
        self._engine = EngineHistory(client)
        self.map_governor = MapGovernor()
        self._shown_at: float | None = None  # the instant that panes show; None for the present
        self._histories: defaultdict[str | None, History] = defaultdict(History)  # by model
        self.history = self._histories[session.model.current]
        self.snapshot = client.snapshot()

    @property
    def awaits_first_text(self) -> bool:
        """Whether the open conversation's answer runs and none of its text has been drawn."""
        return self._session.answers.generating and not self._text_arrived

    @property
    def crowded(self) -> bool:
        """Whether so many requests run that less should be drawn."""
        return self.snapshot.running >= CROWD

    @property
    def in_past(self) -> bool:
        """Whether panes show an earlier instant."""
        return self._shown_at is not None

    async def tick(self, now: float) -> bool:
        """Draw what changed; True while further changes are expected."""
        self.map_governor.begin_tick(now, thread_time(), self._written())
        deltas = self._session.pump()
        self.snapshot = snapshot = self._client.snapshot()
        self._text_arrived &= self._session.answers.generating
        for delta in deltas:
            if delta.text or delta.status is not NodeStatus.STREAMING:
                self._text_arrived = delta.status is NodeStatus.STREAMING
        shown = [delta for delta in deltas if self._session.on_path(delta.node_id)]
        if shown:
            await self._transcript.apply(shown, self._session.path, crowded=self.crowded)
        if any(delta.status is not NodeStatus.STREAMING for delta in deltas):
            self._on_settled()
        drew = Drew.TEXT
        self.map_governor.crowded = self.crowded
        if self._figures_due(snapshot, now):
            self.history = self._histories[self._session.model.current]
            self.history.add(now, snapshot)
            self._engine.add(now, snapshot)
            live = self._hurried or self.map_governor.due(now)
            panes = [*self._panes, *self._streams]
            self._moving = self._draw(snapshot, now, panes, live=live)
            drew = Drew.FIGURES_AND_MAP if live else Drew.FIGURES
        else:
            if deltas and any(pane.in_view for pane in self._streams):
                self._draw(snapshot, now, self._streams)
            if self._draw_live(snapshot, now):
                drew = Drew.MAP
        self.map_governor.end_tick(now, drew)
        working = is_busy(snapshot) or snapshot.state in (EngineState.LOADING, EngineState.DRAINING)
        # Without a model an answer waits for the user, and a change wakes the clock; a server's state is
        # polled only while it is read.
        waiting = snapshot.state is EngineState.UNLOADED and self._server is None
        busy = (self._session.answers.generating and not waiting) or self._session.writes.saving
        return bool(deltas) or working or self._moving or busy

    def go_in_time(self, seconds: float | None) -> bool:
        """Show the engine so many seconds later (negative: earlier); None, or beyond now: the present.

        Returns:
            Whether that is another instant than before.
        """
        engine, before = self._engine, self._shown_at
        self._shown_at = None
        if seconds is not None:
            wanted = max((engine.now if before is None else before) + seconds, engine.oldest)
            self._shown_at = wanted if wanted < engine.now else None
        return self._shown_at != before

    def draw_all(self) -> None:
        """Draw the figures at the next tick too, as after a pane was opened or resized."""
        self._drawn_at = float("-inf")

    def _figures_due(self, snapshot: EngineSnapshot, now: float) -> bool:
        # Show changes by keys and events immediately.
        session = self._session
        about = (
            snapshot.state, session.answers.generating, session.messages.queued,
            session.writes.unsaved, self._mode(),
        )  # fmt: skip
        only_moving = self._moving and snapshot is self._drawn_snapshot
        pause = CROWDED_FIGURES_S if self.crowded else FIGURES_S
        waits = (is_busy(snapshot) or only_moving) and about == self._drawn_for
        if waits and now - self._drawn_at < pause:
            return False
        self._hurried = not waits or self._drawn_at == float("-inf")
        self._drawn_at, self._drawn_for, self._drawn_snapshot = now, about, snapshot
        return True

    def _draw_live(self, snapshot: EngineSnapshot, now: float) -> bool:
        """Draw the blocks that changed, if it is time; whether there were some."""
        if self.in_past or not self._live.in_view or not self.map_governor.due(now):
            return False
        self._engine.add(now, snapshot)
        return self._live.show_live(self._frame(snapshot, now, live=True))

    def _draw(
        self, snapshot: EngineSnapshot, now: float, panes: Sequence[Pane], *, live: bool = False
    ) -> bool:
        """Draw those of the panes that are visible; True if one of them is animated."""
        frame = self._frame(snapshot, now, live=live)
        moving = [pane.show(frame) for pane in panes if pane.in_view]
        return any(moving) or frame.mood.passing

    def _frame(self, snapshot: EngineSnapshot, now: float, *, live: bool) -> Frame:
        engine = self._engine
        mood = self._tracker.advance(
            snapshot, now, repeated=self._session.answers.stopped_for_repetition
        )
        shown, as_of = as_client(engine), None
        if self._shown_at is not None:
            shown = as_client(engine.past(self._shown_at))
            snapshot, as_of = shown.snapshot(), self._wall_clock() - (now - self._shown_at)
        return Frame(
            now=now,
            snapshot=snapshot,
            history=self.history,
            mood=mood,
            client=shown,
            session=self._session,
            selected=self._transcript.selected_id,
            mode=self._mode(),
            hints=self._hints(),
            server=self._server,
            serving=self._serving(),
            retry_key=self._retry_key,
            as_of=as_of,
            live=live,
        )
