"""The mood table, the dwell and the one-shots."""

from dataclasses import replace

import pytest

from app.tui.view.mood import (
    DWELL_S,
    ERROR_SHOWN_S,
    ONE_SHOT_S,
    Mood,
    MoodTracker,
    build_mood_words,
    decode_fps,
    mood,
)
from engine.api.snapshot import BlockCounts, EngineSnapshot, EngineState, StepStats, Totals

CALM = EngineSnapshot(step=1, time=100.0, state=EngineState.READY)
DECODING = replace(CALM, running=1, last_step=StepStats(0.02, 0, 4, 4))
PREFILLING = replace(CALM, running=1, last_step=StepStats(0.02, 300, 1, 2))
WAITING = replace(DECODING, waiting=2)
FULL = replace(WAITING, blocks=BlockCounts(total=100, active=91, free=9))
PREEMPTED = replace(FULL, totals=Totals(preemptions=1))
LOADING = replace(PREEMPTED, state=EngineState.LOADING)
BROKEN = replace(LOADING, state=EngineState.FAILED)
DONE = replace(CALM, totals=Totals(finished={"stop": 1}))
CUT = replace(CALM, totals=Totals(finished={"length": 1}))
ABORTED = replace(CALM, totals=Totals(finished={"abort": 1, "stop": 1}))


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (CALM, Mood.IDLE),
        (DONE, Mood.DONE),
        (CUT, Mood.DONE),
        (ABORTED, Mood.CANCELLED),
        (DECODING, Mood.DECODE),
        (PREFILLING, Mood.PREFILL),
        (WAITING, Mood.BATCH_FULL),
        (FULL, Mood.KV_PRESSURE),
        (PREEMPTED, Mood.SWAPPING),
        (LOADING, Mood.LOADING),
        (BROKEN, Mood.ERROR),
        (replace(BROKEN, state=EngineState.STOPPED), Mood.ERROR),
        (replace(CALM, state=EngineState.UNLOADED, last_error="x"), Mood.ERROR),
        (replace(CALM, state=EngineState.UNLOADED), Mood.IDLE),
        (replace(DECODING, last_error="x", last_error_time=99.0), Mood.ERROR),
        (replace(DECODING, last_error="x", last_error_time=100 - ERROR_SHOWN_S), Mood.DECODE),
    ],
)
def test_each_row_of_the_table_wins_over_those_below(snapshot, expected):
    assert mood(snapshot, CALM) is expected


def test_a_repeating_answer_makes_dizzy_once_nothing_runs():
    assert mood(CALM, CALM, repeated=True) is Mood.DIZZY
    assert mood(DONE, CALM, repeated=True) is Mood.DIZZY
    running = replace(CALM, running=1)
    assert mood(running, CALM, repeated=True) in (Mood.DECODE, Mood.PREFILL)
    assert build_mood_words(Mood.DIZZY, CALM, retry_key="f12") == "f12 tries again"


def test_without_a_previous_snapshot_nothing_has_just_happened():
    assert mood(DONE, None) is Mood.IDLE
    assert mood(PREEMPTED, None) is Mood.KV_PRESSURE


def test_a_mood_holds_for_the_dwell():
    tracker = MoodTracker()
    assert tracker.advance(DECODING, 10.0).mood is Mood.DECODE
    assert tracker.advance(PREFILLING, 10.0 + DWELL_S / 2).mood is Mood.DECODE
    state = tracker.advance(PREFILLING, 10.0 + DWELL_S)
    assert (state.mood, state.since) == (Mood.PREFILL, 10.0 + DWELL_S)
    assert tracker.advance(PREFILLING, 20.0).since == 10.0 + DWELL_S


def test_error_moods_skip_the_dwell():
    tracker = MoodTracker()
    tracker.advance(DECODING, 10.0)
    assert tracker.advance(BROKEN, 10.01).mood is Mood.ERROR


def test_an_end_during_the_dwell_is_shown_after_it_and_once():
    tracker = MoodTracker()
    tracker.advance(DECODING, 10.0)
    assert tracker.advance(DONE, 10.1).mood is Mood.DECODE
    assert tracker.advance(DONE, 10.5).mood is Mood.DONE
    assert tracker.advance(DONE, 10.5 + ONE_SHOT_S / 2).mood is Mood.DONE
    assert tracker.advance(DONE, 10.5 + ONE_SHOT_S).mood is Mood.IDLE
    assert tracker.advance(DONE, 20.0).mood is Mood.IDLE


def test_a_mood_that_ends_without_an_event_is_passing():
    tracker = MoodTracker()
    assert not tracker.advance(CALM, 5.0).passing
    assert not tracker.advance(DECODING, 10.0).passing
    assert tracker.advance(DONE, 10.1).passing  # still the mood before, for the dwell
    assert tracker.advance(DONE, 10.5).passing  # a one-shot
    assert not tracker.advance(DONE, 10.5 + ONE_SHOT_S).passing


def test_new_work_drops_a_queued_one_shot():
    tracker = MoodTracker()
    tracker.advance(DECODING, 10.0)
    tracker.advance(DONE, 10.1)
    again = replace(DECODING, totals=DONE.totals)
    assert tracker.advance(again, 10.6).mood is Mood.DECODE
    assert tracker.advance(replace(CALM, totals=DONE.totals), 12.0).mood is Mood.IDLE


def test_a_preemption_is_shown_for_a_second():
    tracker = MoodTracker()
    tracker.advance(DECODING, 10.0)
    after = replace(DECODING, totals=Totals(preemptions=1))
    assert tracker.advance(after, 11.0).mood is Mood.SWAPPING
    assert tracker.advance(after, 11.9).mood is Mood.SWAPPING
    assert tracker.advance(after, 12.1).mood is Mood.DECODE


@pytest.mark.parametrize(("speed", "fps"), [(0, 2), (18, 3), (40, 6), (70, 8), (1000, 12)])
def test_frames_follow_the_speed_in_steps(speed, fps):
    assert decode_fps(speed) == fps


@pytest.mark.parametrize(
    ("shown", "snapshot", "words"),
    [
        (Mood.ERROR, BROKEN, "stopped by an error"),
        (Mood.LOADING, replace(LOADING, loading_progress=0.4), "loading 40%"),
        (Mood.SWAPPING, PREEMPTED, "making room"),
        (Mood.KV_PRESSURE, FULL, "KV pool 91% full"),
        (Mood.BATCH_FULL, WAITING, "2 waiting"),
        (Mood.PREFILL, PREFILLING, "reading 300 tokens"),
        (Mood.PREFILL, replace(CALM, last_step=StepStats(0.02, 1, 0, 1)), "reading 1 token"),
        (Mood.PREFILL, replace(CALM, last_step=StepStats(0.02, 0, 1, 1)), "reading"),
        (Mood.DECODE, DECODING, "0.0 tok/s"),
        (Mood.DONE, DONE, "done"),
        (Mood.CANCELLED, ABORTED, "stopped"),
        (Mood.IDLE, CALM, "idle"),
    ],
)
def test_every_mood_has_words(shown, snapshot, words):
    assert build_mood_words(shown, snapshot) == words


def test_without_animation_the_mood_is_that_of_the_snapshot_at_once():
    tracker = MoodTracker(animate=False)
    assert tracker.advance(LOADING, 1.0).mood is Mood.LOADING
    ready = tracker.advance(CALM, 1.0)
    assert (ready.mood, ready.passing) == (Mood.IDLE, False)


def test_the_words_never_name_an_empty_queue():
    assert build_mood_words(Mood.BATCH_FULL, WAITING) == "2 waiting"
    assert build_mood_words(Mood.BATCH_FULL, DECODING) == "batch full"
