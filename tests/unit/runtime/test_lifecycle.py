import pytest

from engine.api.errors import EngineUnavailable
from engine.api.events import EngineStateChanged, EventBus
from engine.api.snapshot import EngineState
from engine.runtime.lifecycle import Lifecycle


@pytest.fixture
def told():
    return []


@pytest.fixture
def events():
    return EventBus()


@pytest.fixture
def life(events, told):
    events.subscribe(EngineStateChanged, told.append)
    return Lifecycle(events=events, clock=lambda: 5.0)


def test_a_move_is_told_once_with_its_instant(life, told):
    life.move_to(EngineState.READY)
    life.move_to(EngineState.READY)
    assert told == [EngineStateChanged(5.0, EngineState.READY, None)]


def test_a_move_from_elsewhere_does_nothing(life, told):
    life.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
    assert life.state is EngineState.LOADING
    assert told == []


def test_the_door_can_be_used_by_whoever_is_told(life, events):
    """Else a subscriber that submits would wait for itself."""
    free = []
    events.subscribe(EngineStateChanged, lambda event: free.append(not life.lock.locked()))
    life.move_to(EngineState.READY)
    assert free == [True]


def test_a_failure_is_told_kept_and_raised(life, told):
    life.fail("The file is damaged.")
    assert life.error == ("The file is damaged.", 5.0)
    assert told == [EngineStateChanged(5.0, EngineState.FAILED, "The file is damaged.")]
    with pytest.raises(EngineUnavailable, match=r"^The file is damaged\.$"):
        life.require(EngineState.READY)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (EngineState.LOADING, "still loading"),
        (EngineState.DRAINING, "shutting down"),
        (EngineState.STOPPED, "stopped"),
    ],
)
def test_a_wrong_state_is_named(life, state, words):
    life.move_to(state)
    with pytest.raises(EngineUnavailable, match=words):
        life.require(EngineState.READY)
    life.require(state, EngineState.READY)
