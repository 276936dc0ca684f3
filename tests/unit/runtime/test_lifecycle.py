import pytest

from engine.api.errors import EngineUnavailable
from engine.api.events import EngineStateChanged, EventBus
from engine.api.snapshot import EngineState
from engine.runtime.lifecycle import Lifecycle


@pytest.fixture
def published():
    return []


@pytest.fixture
def events():
    return EventBus()


@pytest.fixture
def life(events, published):
    events.subscribe(EngineStateChanged, published.append)
    return Lifecycle(events=events, clock=lambda: 5.0)


def test_a_state_change_is_published_once_with_its_instant(life, published):
    life.move_to(EngineState.READY)
    life.move_to(EngineState.READY)
    assert published == [EngineStateChanged(5.0, EngineState.READY, None)]


def test_a_change_from_an_excluded_state_does_nothing(life, published):
    life.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
    assert life.state is EngineState.LOADING
    assert published == []


def test_the_lock_is_free_while_subscribers_run(life, events):
    """Otherwise a subscriber that submits a request would deadlock."""
    free = []
    events.subscribe(EngineStateChanged, lambda event: free.append(not life.lock.locked()))
    life.move_to(EngineState.READY)
    assert free == [True]


def test_a_failure_is_published_stored_and_raised(life, published):
    life.fail("The file is damaged.")
    assert life.error == ("The file is damaged.", 5.0)
    assert published == [EngineStateChanged(5.0, EngineState.FAILED, "The file is damaged.")]
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
def test_an_operation_in_the_wrong_state_names_the_state(life, state, words):
    life.move_to(state)
    with pytest.raises(EngineUnavailable, match=words):
        life.require(EngineState.READY)
    life.require(state, EngineState.READY)
