"""The Gantt chart of the scheduler view: one row per request, its phases over the last seconds."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import duration
from app.tui.view.spans import Line, Span, fit
from engine.api.events import (
    Event,
    FirstToken,
    RequestFinished,
    RequestPreempted,
    RequestQueued,
    RequestScheduled,
)

REQUESTS = 256
"""Requests that are remembered."""
WINDOW_S = 10.0
"""Seconds that the chart shows."""
LABEL_CELLS = 10


class Phase(StrEnum):
    """What a request does."""

    QUEUED = "queued"
    PREFILL = "prefill"
    DECODE = "decode"
    PREEMPTED = "preempted"
    FINISHED = "finished"


_STYLES = {
    Phase.QUEUED: "$muted",
    Phase.PREFILL: "$warning",
    Phase.DECODE: "$primary",
    Phase.PREEMPTED: "$error",
}


@dataclass(slots=True)
class _Row:
    """The phases of one request: (begin, phase), in the order of time."""

    phases: list[tuple[float, Phase]] = field(default_factory=list)

    def at(self, time: float) -> Phase | None:
        """The phase at an instant; None before the first and after the end."""
        found = None
        for begin, phase in self.phases:
            if begin > time:
                break
            found = phase
        return None if found is Phase.FINISHED else found


class Timeline:
    """Follows the events of requests."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, _Row] = OrderedDict()

    def feed(self, events: Iterable[Event]) -> None:
        """Add events, oldest first; those that are not of a request's phases are ignored."""
        for event in events:
            match event:
                case RequestQueued(time, request_id):
                    self._begin(request_id, time, Phase.QUEUED)
                case RequestScheduled(time, request_id):
                    self._begin(request_id, time, Phase.PREFILL)
                case FirstToken(time, request_id):
                    self._begin(request_id, time, Phase.DECODE)
                case RequestPreempted(time, request_id):
                    self._begin(request_id, time, Phase.PREEMPTED)
                case RequestFinished(time, request_id):
                    self._begin(request_id, time, Phase.FINISHED)

    def _begin(self, request_id: str, time: float, phase: Phase) -> None:
        row = self._rows.setdefault(request_id, _Row())
        # A resumed request decodes at once if it had its first token before.
        if phase is Phase.PREFILL and any(one is Phase.DECODE for _, one in row.phases):
            phase = Phase.DECODE
        row.phases.append((time, phase))
        if len(self._rows) > REQUESTS:
            self._rows.popitem(last=False)

    def rows(self, begin: float, end: float) -> list[tuple[str, _Row]]:
        """The requests that lived between two instants, oldest first."""
        return [
            (request_id, row)
            for request_id, row in self._rows.items()
            if row.phases[0][0] <= end
            and (row.phases[-1][1] is not Phase.FINISHED or row.phases[-1][0] >= begin)
        ]


def short_id(request_id: str) -> str:
    """The beginning of a request's id that tells requests apart."""
    return fit(safe_line(request_id).removeprefix("req-")[:8], 8)


def build_gantt(
    timeline: Timeline,
    now: float,
    glyphs: Glyphs,
    cells: int,
    rows: int,
    *,
    own: str | None = None,
    end: str = "now",
) -> list[Line]:
    """A row for each request of the last `WINDOW_S`, the newest requests if there are more than `rows`.

    Args:
        timeline: the events so far.
        now: the right end, on the clock of `EngineSnapshot.time`.
        glyphs: the terminal's glyphs.
        cells: width.
        rows: most rows of requests.
        own: the open conversation's request, marked.
        end: what the right end is.
    """
    width = cells - LABEL_CELLS
    if width < 10:
        return []
    shown = timeline.rows(now - WINDOW_S, now)
    hidden, shown = len(shown) - rows, shown[-rows:]
    lines: list[Line] = [_axis(width, end)]
    step = WINDOW_S / width
    for request_id, row in shown:
        mark = glyphs.current if request_id == own else " "
        label = Span(
            f"{mark} {short_id(request_id)}".ljust(LABEL_CELLS),
            "$accent" if request_id == own else "$muted",
        )
        phases = [row.at(now - WINDOW_S + (column + 0.5) * step) for column in range(width)]
        lines.append((label, *_bars(phases, glyphs)))
    if not shown:
        lines.append((Span("no requests in the last seconds", "$faint"),))
    if hidden > 0:
        lines.append((Span(f"{hidden} older requests", "$faint"),))
    return lines


def _axis(width: int, right: str) -> Line:
    left = f"-{duration(WINDOW_S)}"
    gap = " " * max(1, width - len(left) - len(right))
    return (Span(" " * LABEL_CELLS), Span(f"{left}{gap}{right}", "$faint"))


def _bars(phases: list[Phase | None], glyphs: Glyphs) -> list[Span]:
    spans: list[Span] = []
    begin = 0
    for end in range(1, len(phases) + 1):
        if end == len(phases) or phases[end] is not phases[begin]:
            phase = phases[begin]
            glyph = _glyph(phase, glyphs) if phase else " "
            spans.append(Span(glyph * (end - begin), _STYLES[phase] if phase else ""))
            begin = end
    return spans


def _glyph(phase: Phase, glyphs: Glyphs) -> str:
    return glyphs.phases[list(_STYLES).index(phase)]


def build_gantt_legend(glyphs: Glyphs) -> Line:
    """What the bars mean."""
    spans: list[Span] = []
    for phase, style in _STYLES.items():
        spans += [Span(_glyph(phase, glyphs), style), Span(f" {phase.value}  ", "$muted")]
    return tuple(spans)
