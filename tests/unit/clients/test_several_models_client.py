"""One client over several models: whom it asks, and what a reader of numbers sees of a change."""

import pytest

from engine.api.events import PrefixUnpinned
from engine.api.request import Request, SamplingParams
from engine.clients.several_models_client import SeveralModelsClient
from tests.fakes.toy_model_set import NamedClient, ToyModelSet


@pytest.fixture
def models():
    return ToyModelSet(NamedClient("big", "an answer"), NamedClient("small", "another"))


class Followed:
    """The client, and the model that it follows."""

    def __init__(self, models):
        self.name = None
        self.client = SeveralModelsClient(models)
        self.client.follow(lambda: self.name)


@pytest.fixture
def followed(models):
    return Followed(models)


def ask(text="hello"):
    return Request(tuple(range(1000, 1000 + len(text))), SamplingParams())


def event(number):
    return PrefixUnpinned(float(number), f"pin-{number}", 1, False)


def test_it_asks_the_model_that_is_followed(followed):
    assert followed.client.snapshot().model.name == "big"
    followed.name = "small"
    assert followed.client.snapshot().model.name == "small"
    assert followed.client.tokenizer_fingerprint() == "tokens of small"


def test_a_request_is_submitted_to_the_model_that_is_followed(followed, models):
    followed.name = "small"
    followed.client.submit(ask())
    assert models.clients["big"].requests == []
    assert len(models.clients["small"].requests) == 1


def test_a_pin_ends_where_it_was_made(followed, models):
    pin_id = followed.client.pin((1, 2, 3))
    followed.name = "small"
    followed.client.unpin(pin_id)
    assert models.clients["big"].pins == {}


def test_another_model_is_a_change_of_the_block_map(followed, models):
    client = followed.client
    first = client.blocks(-1)
    assert client.blocks(first.epoch) is None
    models.clients["big"].submit(ask())
    second = client.blocks(first.epoch)
    followed.name = "small"
    third = client.blocks(second.epoch)
    assert third.epoch > second.epoch
    assert not third.state.any()
    assert client.blocks(third.epoch) is None
    followed.name = "big"
    fourth = client.blocks(third.epoch)
    assert fourth.epoch > third.epoch
    assert fourth.state.any()


def test_events_of_each_model_come_once_to_every_reader(followed, models):
    client = followed.client
    models.clients["big"].event_ring.append(event(1))
    assert [one.time for one in client.events(0).events] == [1.0]
    models.clients["small"].event_ring.append(event(2))
    followed.name = "small"
    batch = client.events(1)
    assert [one.time for one in batch.events] == [2.0]
    followed.name = "big"
    models.clients["big"].event_ring.append(event(3))
    assert [one.time for one in client.events(batch.next).events] == [3.0]
    assert [one.time for one in client.events(0).events] == [1.0, 2.0, 3.0]


def test_the_list_marks_the_model_that_is_followed(followed):
    followed.name = "small"
    assert [(one.name, one.loaded) for one in followed.client.models()] == [
        ("big", False),
        ("small", True),
    ]


def test_load_and_unload_are_the_sets(followed, models):
    followed.client.load_model("small")
    followed.name = "small"
    followed.client.unload_model()
    assert models.changes == [("load", "small"), ("unload", "small")]
    followed.client.close()
    assert models.closed
