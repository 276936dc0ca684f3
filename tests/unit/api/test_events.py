from engine.api.events import EngineStateChanged, EventBus, RequestQueued
from engine.api.snapshot import EngineState


def test_events_go_to_subscribers_of_their_type_in_order():
    bus, heard = EventBus(), []
    bus.subscribe(RequestQueued, lambda event: heard.append(("a", event.request_id)))
    bus.subscribe(RequestQueued, lambda event: heard.append(("b", event.request_id)))
    bus.publish(RequestQueued(1.0, "r1", 3))
    bus.publish(EngineStateChanged(1.0, EngineState.READY))
    assert heard == [("a", "r1"), ("b", "r1")]


def test_an_exception_of_a_subscriber_is_logged_only(caplog):
    bus, heard = EventBus(), []

    def explode(event):
        raise RuntimeError("mine")

    bus.subscribe(RequestQueued, explode)
    bus.subscribe(RequestQueued, heard.append)
    bus.publish(RequestQueued(1.0, "r1", 3))
    assert len(heard) == 1
    assert "A subscriber to RequestQueued failed." in caplog.text


def test_unsubscribing_is_idempotent():
    bus, heard = EventBus(), []
    stop = bus.subscribe(RequestQueued, heard.append)
    assert bus.has_subscribers(RequestQueued)
    stop()
    stop()
    bus.publish(RequestQueued(1.0, "r1", 3))
    assert heard == []
    assert not bus.has_subscribers(RequestQueued)
