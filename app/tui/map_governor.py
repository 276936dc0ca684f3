"""`MapGovernor`: how often the KV map is drawn while blocks change.

Ten times a second; five, then two, if most of the last frames were expensive: more bytes than `MAX_BYTES`,
more than `MAX_SHARE` of a core at the present rate, or not yet taken by the terminal when the next tick was
due. The rate rises again after `CALM_S` in which frames would have been cheap at the higher rate too.

Pure: times, costs and bytes are arguments.
"""

from collections import deque
from enum import Enum
from statistics import median

RATES_HZ = (10.0, 5.0, 2.0)
MAX_BYTES = 64 * 1024
MAX_SHARE = 0.05
RECENT = 5
"""Number of frames of which most must be expensive, so that single outliers have no effect."""
CALM_S = 2.0


class Drew(Enum):
    """What a tick drew."""

    TEXT = "text"
    MAP = "text and map"
    FIGURES = "figures"
    FIGURES_AND_MAP = "figures and map"


class MapGovernor:
    """Tells on which ticks the map is due, and judges its frames by what they cost.

    A frame costs what is spent from its tick until the next one. The map's share is what such ticks take
    longer than those that draw text only; ticks that draw all figures are not judged.

    Attributes:
        crowded: whether many requests run, which limits the rate to the lowest.
    """

    def __init__(self) -> None:
        self.crowded = False
        self._level = 0
        self._due_at = float("-inf")
        self._last = Drew.FIGURES
        self._spent = 0.0
        self._written = 0
        self._dropped = False
        self._judged_at = float("-inf")
        self._calm_since = float("-inf")
        self._of_text: deque[float] = deque(maxlen=RECENT)  # seconds
        self._frames: deque[tuple[float, bool]] = deque(maxlen=RECENT)  # seconds, other reason

    @property
    def hz(self) -> float:
        """The present rate, frames a second."""
        return RATES_HZ[-1] if self.crowded else RATES_HZ[self._level]

    def due(self, now: float) -> bool:
        """Whether the map may be drawn at `now`."""
        return now >= self._due_at

    def dropped(self) -> None:
        """The terminal had not taken the last frame when the next one was due."""
        self._dropped = True

    def begin_tick(self, now: float, spent: float, written: int) -> None:
        """A tick begins: judge the one before.

        Args:
            now: monotonic seconds.
            spent: processor seconds of the screen's thread, since the start.
            written: bytes written to the terminal, since the start.
        """
        seconds, size = spent - self._spent, written - self._written
        self._spent, self._written = spent, written
        dropped, self._dropped = self._dropped, False
        if self._last is Drew.TEXT:
            self._of_text.append(seconds)
        elif self._last is Drew.MAP:
            own = max(0.0, seconds - median(self._of_text)) if self._of_text else seconds
            self._judge(own, size > MAX_BYTES or dropped, now)

    def end_tick(self, now: float, drew: Drew) -> None:
        """The tick that began at `now` ends."""
        self._last = drew
        if drew in (Drew.MAP, Drew.FIGURES_AND_MAP):
            # Periods are no multiples of a tick: the next one begins when this one was due.
            period = 1 / self.hz
            self._due_at = min(max(self._due_at, now - period), now) + period

    def _judge(self, seconds: float, otherwise: bool, now: float) -> None:
        if now - self._judged_at > CALM_S:  # nothing changed for a while
            self._level = 0
            self._frames.clear()
        self._judged_at = now
        self._frames.append((seconds, otherwise))
        if self._expensive_at(self._level) and self._level < len(RATES_HZ) - 1:
            self._level += 1
            self._frames.clear()
        if self._level == 0 or not self._frames or self._expensive_at(self._level - 1):
            self._calm_since = now
        elif now - self._calm_since >= CALM_S:
            self._level -= 1
            self._calm_since = now

    def _expensive_at(self, level: int) -> bool:
        """Whether most of the last frames would be too expensive at a rate."""
        limit = MAX_SHARE / RATES_HZ[level]
        return sum(other or seconds > limit for seconds, other in self._frames) > RECENT // 2
