"""Recordings: what a client answered is answered again, at the same times, and damage is refused."""

import dataclasses
import json
import random
import typing
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.api.available_model import AvailableModel
from engine.api.errors import InvalidRequest, ModelNotFound, QueueFull
from engine.api.event_ring import EventRing
from engine.api.events import Event, RequestQueued
from engine.api.request import FinishReason, Request, Timings, TokenBatch, TopLogprob
from engine.api.step_view import StepEntry
from engine.clients.engine_client import EngineClient
from engine.clients.recording_client import (
    NOT_RECORDED,
    Recording,
    RecordingClient,
    difference,
    updated,
)
from engine.clients.replay_client import RecordedLines, ReplayClient
from engine.clients.value_codec import CodecError, decode, encode
from tests.fakes.fake_client import FakeClient


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def record(path, clock, client=None):
    recording = Recording(path, clock)
    client = client or FakeClient("one two three", "four")
    return recording, client, RecordingClient(client, recording)


def play(path, clock):
    return ReplayClient(RecordedLines.open(path), clock)


def batches(client, request_id):
    found = []
    while (batch := client.drain(request_id)) is not None:
        found.append(batch)
    return found


def test_snapshots_blocks_and_batches_come_at_their_times(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    seen = []
    request_id = client.submit(Request((1, 2, 3)))
    for step in range(6):
        clock.now = float(step)
        seen.append((client.snapshot(), client.blocks(-1), client.drain(request_id)))
        engine.step()
    recording.close()

    replayed = play(tmp_path / "r", clock)
    clock.now = 0.0
    assert replayed.submit(Request((9,))) == request_id
    for step, (snapshot, blocks, batch) in enumerate(seen):
        clock.now = float(step)
        assert replayed.snapshot() == snapshot
        again = replayed.blocks(-1)
        for field in dataclasses.fields(blocks):
            np.testing.assert_array_equal(
                getattr(again, field.name), getattr(blocks, field.name), strict=True
            )
        assert replayed.blocks(blocks.epoch) is None
        assert replayed.drain(request_id) == batch


def test_a_batch_does_not_come_before_its_time(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    client.snapshot()
    request_id = client.submit(Request((1,)))
    clock.now = 5.0
    engine.finish()
    expected = batches(client, request_id)
    recording.close()
    clock.now = 4.9
    replayed = play(tmp_path / "r", clock)
    assert batches(replayed, request_id) == []
    clock.now = 5.1
    assert batches(replayed, request_id) == expected


def test_answers_depend_on_the_arguments_and_errors_are_raised_again(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    client.snapshot()
    assert client.tokenize("ab") != client.tokenize("cd")
    engine.refuse = QueueFull("The queue is full.")
    with pytest.raises(QueueFull):
        client.submit(Request((1,)))
    recording.close()
    replayed = play(tmp_path / "r", clock)
    with pytest.raises(QueueFull, match="The queue is full"):
        replayed.submit(Request((1,)))
    with pytest.raises(InvalidRequest, match="ends here"):
        replayed.submit(Request((1,)))
    assert replayed.tokenize("ab") == engine.tokenize("ab")
    assert replayed.tokenize("cd") == engine.tokenize("cd")
    with pytest.raises(InvalidRequest, match="no answer to this"):
        replayed.tokenize("never asked")


def test_a_reader_of_events_gets_each_once(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    client.snapshot()
    ring = EventRing()
    engine.events = ring.since
    since, expected = 0, []
    for second in range(4):
        clock.now = float(second)
        ring.append(RequestQueued(clock.now, f"r{second}", 3))
        batch = client.events(since)
        expected += batch.events
        since = batch.next
    recording.close()
    replayed = play(tmp_path / "r", clock)
    since, found = 0, []
    for second in (0.0, 0.5, 2.0, 9.0, 9.0):
        clock.now = second
        batch = replayed.events(since)
        found += batch.events
        since = batch.next
    assert found == expected
    clock.now = 1.0
    assert [event.request_id for event in replayed.events(1).events] == ["r1"]


def test_an_existing_file_is_not_overwritten(tmp_path, clock):
    (tmp_path / "r").write_text("mine")
    with pytest.raises(FileExistsError):
        Recording(tmp_path / "r", clock)
    assert (tmp_path / "r").read_text() == "mine"


def test_what_does_not_change_is_written_once(tmp_path, clock):
    recording, _, client = record(tmp_path / "r", clock)
    for _ in range(50):
        client.snapshot()
        client.price([1, 2, 3])
    recording.close()
    assert len((tmp_path / "r").read_text().splitlines()) == 2


def test_prices_are_futures_again_errors_included(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    client.snapshot()
    price = client.price([1, 2, 3]).result()
    failed: Future = Future()
    failed.set_exception(InvalidRequest("The tokens are not a valid prompt."))
    engine.price = lambda ids: failed
    with pytest.raises(InvalidRequest):
        client.price([4]).result()
    recording.close()
    replayed = play(tmp_path / "r", clock)
    assert replayed.price([1, 2, 3]).result() == price
    with pytest.raises(InvalidRequest, match="not a valid prompt"):
        replayed.price([4]).result()


def test_every_call_of_the_protocol_has_a_type_that_can_be_decoded():
    for name, method in vars(EngineClient).items():
        if name.startswith("_") or name in NOT_RECORDED:
            continue
        kind = typing.get_type_hints(method)["return"]
        with pytest.raises(CodecError):
            decode(object(), kind, name)


BATCH = TokenBatch(
    request_id="r", token_ids=(1, 2), text="é\x00", timings=Timings(0.0, None, 1.5), seed=2**63,
    logprobs=(-0.5, float("-inf")), top_logprobs=((TopLogprob(1, -0.5),), ()),
    drafted=(False, True), finish_reason=FinishReason.STOP,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (BATCH, TokenBatch),
        (None, TokenBatch | None),
        ({"a": 1}, dict[str, int]),
        ((1.0, float("inf")), tuple[float, ...]),
        (b"\x00\xff", bytes),
        (frozenset({"a"}), frozenset[str]),
        ((StepEntry(1, 0.5, 0.1, 2, 3, 0, 4),), tuple[StepEntry, ...]),
        ((RequestQueued(0.0, "r", 1),), tuple[Event, ...]),
    ],
)
def test_a_value_has_a_json_form(value, kind):
    assert decode(json.loads(json.dumps(encode(value))), kind) == value


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("1", int), (True, int), (1, str), ([], dict[str, int]), ({}, tuple[int, ...]),
        ([1], tuple[int, int]), ("never", FinishReason), ({"token_id": 1}, TopLogprob),
        ({"@": "Timings"}, TopLogprob), ({"dtype": "O", "shape": [1], "data": ""}, np.ndarray),
        ({"dtype": "<u4", "shape": [2**40], "data": ""}, np.ndarray), ("é", bytes),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(data, kind):
    with pytest.raises(CodecError):
        decode(data, kind)


objects = st.recursive(
    st.none() | st.integers(0, 9) | st.text("ab", max_size=2) | st.lists(st.integers(0, 3)),
    lambda children: st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    max_leaves=12,
)


@given(first=st.dictionaries(st.sampled_from("abc"), objects), rest=st.lists(objects, max_size=4))
def test_differences_add_up(first, rest):
    states = [first, *({**first, "x": one} for one in rest)]
    last, rebuilt = {}, {}
    for state in states:
        rebuilt = updated(rebuilt, difference(last, state))
        last = state
        assert rebuilt == state


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "r"
    clock = Clock()
    recording, engine, client = record(path, clock)
    recording.write("start", {"version": 1})
    request_id = client.submit(Request((1, 2, 3)))
    for _ in range(5):
        clock.now += 0.1
        client.snapshot()
        client.blocks(-1)
        client.drain(request_id)
        engine.step()
    client.tokenize("hello")
    recording.close()
    return path.read_text()


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_recording_is_read_or_refused(sample, seed):
    rng = random.Random(seed)
    text = list(sample)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        match rng.randrange(3):
            case 0:
                text[at] = chr(rng.randrange(32, 127))
            case 1:
                del text[at : at + rng.randrange(1, 40)]
            case 2:
                text[at:at] = rng.choice(["{", "]", "null", "1e999", '"', "-1", "[[[["])
    try:
        client = ReplayClient(RecordedLines("".join(text).splitlines()), lambda: 1e9)
        client.snapshot()
        client.blocks(-1)
    except InvalidRequest:
        pass


def test_the_installed_models_and_a_change_of_the_model_are_recorded(tmp_path, clock):
    recording, engine, client = record(tmp_path / "r", clock)
    engine.installed = [AvailableModel("small", 100, "llama", 5, problem="It does not fit.")]
    client.snapshot()
    assert client.models() == tuple(engine.installed)
    client.load_model("small", drain_s=0.0)
    engine.refuse_load = ModelNotFound("No model called 'none' is installed.")
    with pytest.raises(ModelNotFound):
        client.load_model("none")
    recording.close()
    replayed = play(tmp_path / "r", clock)
    assert list(replayed.models()) == engine.installed
    assert replayed.load_model("small", drain_s=0.0) is None
    with pytest.raises(ModelNotFound, match="none"):
        replayed.load_model("none")


@pytest.mark.parametrize(
    "line", [["call", "call_form", [], {}], ["error", "call_form", [], "X", ""]]
)
def test_a_call_that_clients_had_once_is_passed_over(tmp_path, clock, line):
    recording, _, client = record(tmp_path / "r", clock)
    client.snapshot()
    recording.write(*line)
    recording.close()
    assert play(tmp_path / "r", clock).snapshot() == client.snapshot()
