"""`Frame`: what a tick of the frame clock shows; `Pane`, `LivePane`: how widgets join it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.tui.view.key_hints import KeyHint
from app.tui.view.mood import MoodState
from app.tui.view.stats import History
from engine.api.snapshot import EngineSnapshot
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession


@dataclass(frozen=True, slots=True)
class Frame:
    """The data of one drawing of the figures.

    Attributes:
        now: monotonic seconds.
        snapshot: the engine at its last step boundary.
        history: samples of the last two minutes, for sparklines.
        mood: the avatar's mood and when it began.
        client: for data that is not in the snapshot, such as the blocks.
        session: the open conversation.
        selected: the message under the cursor of navigate mode.
        mode: keyboard mode, `PROMPT` or `NAVIGATE`.
        hints: to show in the status bar if there is room.
        server: the address of the engine's server; None for an engine in this process.
        serving: the address at which the engine of this process is served; None if it is not.
        retry_key: regenerates an answer.
        as_of: when the engine was as it is shown, seconds since the epoch; None for the present.
        live: whether the live part of a `LivePane` is due, too.
    """

    now: float
    snapshot: EngineSnapshot
    history: History
    mood: MoodState
    client: EngineClient
    session: TreeSession
    selected: str | None
    mode: str
    hints: Sequence[KeyHint]
    server: str | None
    serving: str | None
    retry_key: str
    as_of: float | None = None
    live: bool = True


class Pane(Protocol):
    """A widget that is drawn from frames. `MainView.panes` lists them; nothing else is to be wired."""

    @property
    def in_view(self) -> bool:
        """Whether the widget is visible; `show` is not called otherwise."""
        ...

    def show(self, frame: Frame) -> bool:
        """Draw what changed since the last frame.

        Returns:
            Whether it will look different at a later time even if nothing happens (an animation).
        """
        ...


class LivePane(Pane, Protocol):
    """A pane of which a part is drawn between the frames of the figures, too."""

    def show_live(self, frame: Frame) -> bool:
        """Draw that part; whether it changed."""
        ...
