"""The avatar's mood, a pure function of the engine's snapshot, and its minimum duration."""

from dataclasses import dataclass, replace
from enum import StrEnum

from app.tui.numbers import clamp, percent, rate
from engine.api.snapshot import EngineSnapshot, EngineState

DWELL_S = 0.4
"""Minimum duration of a mood, so that the figure does not change with every step."""
ONE_SHOT_S = 0.8
PRESSURE = 0.9
"""Share of the KV pool in use above which the mood is `KV_PRESSURE`."""
ERROR_SHOWN_S = 5.0
PREEMPTION_SHOWN_S = 1.0


class Mood(StrEnum):
    """The states of the figure, whose frames are in `app/tui/avatar/*.txt`."""

    ERROR = "error"
    LOADING = "loading"
    SWAPPING = "swapping"
    KV_PRESSURE = "kv_pressure"
    BATCH_FULL = "batch_full"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"
    CANCELLED = "cancelled"
    DIZZY = "dizzy"
    IDLE = "idle"


ONE_SHOTS = frozenset({Mood.DONE, Mood.CANCELLED})
_URGENT = frozenset({Mood.ERROR, Mood.LOADING})


def mood(
    snapshot: EngineSnapshot, previous: EngineSnapshot | None, *, repeated: bool = False
) -> Mood:
    """The mood of `snapshot`; differences from `previous` show preemptions and finished requests.

    Args:
        snapshot: the engine.
        previous: its snapshot before.
        repeated: whether the open conversation's last answer was stopped because it repeated itself.
    """
    if snapshot.state in {EngineState.FAILED, EngineState.STOPPED} or _recent_error(snapshot):
        return Mood.ERROR
    if snapshot.state is EngineState.UNLOADED and snapshot.last_error is not None:
        return Mood.ERROR
    if snapshot.state is EngineState.LOADING or snapshot.changes_model:
        return Mood.LOADING
    if previous and snapshot.totals.preemptions > previous.totals.preemptions:
        return Mood.SWAPPING
    if snapshot.blocks.usage > PRESSURE:
        return Mood.KV_PRESSURE
    if snapshot.waiting > 0:
        return Mood.BATCH_FULL
    if snapshot.running > 0:
        step = snapshot.last_step
        return Mood.PREFILL if step.prefill_tokens > step.decode_tokens else Mood.DECODE
    if repeated:
        return Mood.DIZZY
    if previous:
        if _finished(snapshot, "abort") > _finished(previous, "abort"):
            return Mood.CANCELLED
        if _completed(snapshot) > _completed(previous):
            return Mood.DONE
    return Mood.IDLE


def _recent_error(snapshot: EngineSnapshot) -> bool:
    when = snapshot.last_error_time
    return (
        when is not None
        and snapshot.time - when < ERROR_SHOWN_S
        and snapshot.last_error is not None
    )


def _finished(snapshot: EngineSnapshot, reason: str) -> int:
    return snapshot.totals.finished.get(reason, 0)


def _completed(snapshot: EngineSnapshot) -> int:
    return _finished(snapshot, "stop") + _finished(snapshot, "length")


def decode_fps(tokens_per_second: float) -> int:
    """Frames a second while decoding: 2 to 12 by speed, in few steps to avoid jumps between frames."""
    wanted = clamp(tokens_per_second / 6, 2, 12)
    return max(step for step in (2, 3, 4, 6, 8, 12) if step <= wanted)


def build_mood_words(shown: Mood, snapshot: EngineSnapshot, *, retry_key: str = "r") -> str:
    """The caption and tooltip of a mood; `retry_key` regenerates an answer."""
    match shown:
        case Mood.ERROR:
            return "stopped by an error"
        case Mood.LOADING:
            return f"loading {percent(snapshot.loading_progress)}"
        case Mood.SWAPPING:
            return "making room"
        case Mood.KV_PRESSURE:
            return f"KV pool {percent(snapshot.blocks.usage)} full"
        case Mood.BATCH_FULL:
            # The mood outlasts the queue by its dwell.
            return f"{snapshot.waiting} waiting" if snapshot.waiting else "batch full"
        case Mood.PREFILL:
            count = snapshot.last_step.prefill_tokens  # 0 if the last step came after the prefill
            return f"reading {count} token{'' if count == 1 else 's'}" if count else "reading"
        case Mood.DECODE:
            return f"{rate(snapshot.rates.decode_tokens_per_second)} tok/s"
        case Mood.DONE:
            return "done"
        case Mood.CANCELLED:
            return "stopped"
        case Mood.DIZZY:
            return f"{retry_key} tries again"
        case Mood.IDLE:
            return "idle"


@dataclass(frozen=True, slots=True)
class MoodState:
    """The current mood.

    Attributes:
        since: when it began, in the clock's seconds.
        passing: whether another mood follows although nothing happens in the engine.
    """

    mood: Mood
    since: float
    passing: bool = False


class MoodTracker:
    """Selects the mood to show: each lasts at least `DWELL_S`; one one-shot mood can be queued.

    Args:
        animate: whether moods pass by themselves; without, the mood is that of the snapshot at once.
    """

    def __init__(self, *, animate: bool = True) -> None:
        self._animate = animate
        self._previous: EngineSnapshot | None = None
        self._queued: Mood | None = None
        self._preempted_at: float | None = None
        self._wanted = Mood.IDLE  # by the last snapshot alone
        self.state = MoodState(Mood.IDLE, 0.0)

    def advance(self, snapshot: EngineSnapshot, now: float, *, repeated: bool = False) -> MoodState:
        """The mood to show at time `now`, given the newest snapshot; `repeated` as for `mood`."""
        if not self._animate:
            wanted = mood(snapshot, None, repeated=repeated)
            if wanted is not self.state.mood:
                self.state = MoodState(wanted, now)
            return self.state
        self._choose(snapshot, now, repeated=repeated)
        shown = self.state.mood
        passing = shown in ONE_SHOTS or self._queued is not None or shown is not self._wanted
        if passing is not self.state.passing:
            self.state = replace(self.state, passing=passing)
        return self.state

    def _choose(self, snapshot: EngineSnapshot, now: float, *, repeated: bool) -> None:
        wanted = mood(snapshot, self._previous, repeated=repeated)
        if self._previous and snapshot.totals.preemptions > self._previous.totals.preemptions:
            self._preempted_at = now
        self._previous = snapshot
        self._wanted = wanted
        if self._preempted_at is not None and now - self._preempted_at < PREEMPTION_SHOWN_S:
            wanted = wanted if wanted in _URGENT else Mood.SWAPPING
        if wanted in ONE_SHOTS:
            self._queued = wanted
        shown, since = self.state.mood, self.state.since
        held = ONE_SHOT_S if shown in ONE_SHOTS else DWELL_S
        if wanted not in _URGENT and now - since < held and since > 0.0:
            return
        if wanted is Mood.IDLE and self._queued:
            wanted = self._queued
        if wanted in ONE_SHOTS:
            if wanted is shown and self._queued is None:
                wanted = Mood.IDLE
            self._queued = None
        elif wanted is not Mood.IDLE:
            self._queued = None
        if wanted is not shown or since == 0.0:
            self.state = MoodState(wanted, now)
