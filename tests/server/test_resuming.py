"""Resumable streams: a lost connection neither ends an answer nor changes its text."""

import itertools
import json
import random
import re
from dataclasses import replace

import httpx
import pytest

from engine.api.errors import EngineUnavailable
from engine.api.request import FinishReason, new_request_id
from engine.api.snapshot import EngineState
from engine.clients.http_client import HttpClient
from engine.clients.http_streams import RESUME_S
from engine.clients.in_process import InProcessClient
from engine.clients.sse_decoder import SseDecoder, SseEvent
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.client_contract import add_batch, ask, drain_all
from tests.server.cutting_proxy import cutting_proxy
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, batch

HEAD_BYTES = 400  # of a response, which a cut of a new connection leaves whole


@pytest.fixture(scope="module")
def paced():
    with byte_engine(step_s=0.002, max_num_seqs=8) as engine, live(engine) as server:
        yield engine, server


def answer(client, request):
    """Token ids and text of a request's answer, and its last batch."""
    batches = drain_all(client, submitted(client, request))
    ids = [one for batch in batches for one in batch.token_ids]
    return ids, "".join(batch.text for batch in batches), batches[-1]


def submitted(client, request):
    """The id of a request; it is sent again if the connection is cut before it is accepted."""
    while True:
        try:
            return client.submit(replace(request, request_id=new_request_id()))
        except EngineUnavailable:
            continue


def question(number):
    return ask(f"question {number}", max_tokens=120, temperature=1.0, seed=number)


def test_answers_over_a_network_that_cuts_connections_are_those_of_an_unbroken_one(paced):
    engine, server = paced
    draw = random.Random(21)
    direct = InProcessClient(engine)

    def cut_after():
        return HEAD_BYTES + draw.randrange(12_000)

    with cutting_proxy(server.address, cut_after) as proxy:
        client = HttpClient(proxy.url)
        try:
            for number in range(12):
                ids, text, last = answer(client, question(number))
                expected_ids, expected_text, expected_last = answer(direct, question(number))
                assert (ids, text) == (expected_ids, expected_text)
                assert last.finish_reason is expected_last.finish_reason
        finally:
            client.close()
        resumed = [one for one in proxy.requests if one.startswith("GET /streams/")]
    assert proxy.cuts >= 12
    assert len(resumed) >= 12


def test_the_marks_of_accepted_drafts_survive_cut_connections():
    drafted = [number % 3 > 0 for number in range(300)]

    def script(request):
        parts = [drafted[at : at + 3] for at in range(0, 300, 3)]
        batches = [replace(batch(request, "abc"), drafted=tuple(part)) for part in parts]
        return [*batches, batch(request, "", FinishReason.LENGTH)]

    with (
        live(ScriptedEngine(script)) as server,
        cutting_proxy(server.address, lambda: HEAD_BYTES + 5_000) as proxy,
    ):
        client = HttpClient(proxy.url)
        try:
            batches = drain_all(client, submitted(client, ask()))
        finally:
            client.close()
        assert proxy.cuts >= 2
    assert [one for part in batches for one in part.drafted] == drafted


def test_the_request_goes_on_while_the_network_is_away(paced):
    engine, server = paced
    with cutting_proxy(server.address) as proxy:
        client = HttpClient(proxy.url)
        try:
            request = question(99)
            request_id = client.submit(request)
            wait_until(lambda: client.drain(request_id) is not None)
            proxy.cut()
            wait_until(lambda: is_quiet(engine))  # it finished without its client
            proxy.up = True
            last = drain_all(client, request_id)[-1]
        finally:
            client.close()
    assert last.finish_reason is FinishReason.LENGTH


def test_a_network_that_stays_away_fails_the_answer_with_the_reason(paced):
    engine, server = paced
    with cutting_proxy(server.address) as proxy:
        client = HttpClient(proxy.url, clock=itertools.count(0.0, RESUME_S / 4).__next__)
        try:
            request_id = client.submit(ask(max_tokens=400, ignore_eos=True))
            wait_until(lambda: client.drain(request_id) is not None)
            proxy.cut()
            last = drain_all(client, request_id)[-1]
        finally:
            client.close()
    assert last.finish_reason is FinishReason.ERROR
    assert "did not come back in 30 seconds" in last.error
    engine.abort(request_id)
    wait_until(lambda: is_quiet(engine))


@pytest.mark.parametrize("connections", ["kept", "lost"])
def test_a_network_that_loses_everything_is_noticed_and_the_answer_goes_on(connections):
    with (
        byte_engine(step_s=0.01) as engine,
        live(engine, keep_alive_s=0.1) as server,
        cutting_proxy(server.address) as proxy,
    ):
        client = HttpClient(proxy.url, silence_s=2.0)
        try:
            request = question(7)
            batches = []
            request_id = submitted(client, request)
            wait_until(lambda: add_batch(client, request_id, batches) and batches)
            proxy.silent = True
            # A busy machine notices it later, and the reason says how much later.
            reason = re.compile(rf"No word from the server at {proxy.url} for \d+ s\.")
            wait_until(lambda: reason.match(client.snapshot().last_error or ""))
            assert client.snapshot().state is EngineState.FAILED
            if connections == "lost":
                proxy.lose()
            proxy.silent = False
            wait_until(lambda: client.snapshot().state is EngineState.READY)
            wait_until(lambda: add_batch(client, request_id, batches) and batches[-1].finish_reason)
            ids = [one for batch in batches for one in batch.token_ids]
            assert ids == answer(InProcessClient(engine), request)[0]
        finally:
            client.close()


def test_a_request_whose_client_does_not_come_back_is_aborted():
    with byte_engine(step_s=0.01) as engine, live(engine, resume_s=0.1) as server:
        body = body_of("r1", max_tokens=400)
        with httpx.stream(
            "POST", f"{server.url}/v1/completions", json=body, timeout=60
        ) as response:
            next(response.iter_bytes())
        wait_until(lambda: is_quiet(engine))
        assert engine.snapshot().totals.finished["abort"] == 1
        assert httpx.get(f"{server.url}/streams/r1", timeout=60).status_code == 404
        assert not server.context.drain.active


def test_a_request_that_is_not_resumable_is_aborted_at_once(paced):
    engine, server = paced
    before = engine.snapshot().totals.finished["abort"]
    body = body_of("plain", max_tokens=400) | {"resumable": False}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=60) as response:
        next(response.iter_bytes())
    wait_until(lambda: engine.snapshot().totals.finished["abort"] == before + 1)


def test_stopping_ends_a_resumable_request_at_once():
    with byte_engine(step_s=0.005) as engine, live(engine) as server:
        client = HttpClient(server.url)
        try:
            request_id = client.submit(ask(max_tokens=400, ignore_eos=True))
            wait_until(lambda: client.drain(request_id) is not None)
            client.cancel(request_id)
            assert drain_all(client, request_id)[-1].finish_reason is FinishReason.ABORT
            wait_until(lambda: is_quiet(engine))
            # A client that is closed leaves nothing behind either.
            other = client.submit(ask(max_tokens=400, ignore_eos=True))
            wait_until(lambda: client.drain(other) is not None)
        finally:
            client.close()
        wait_until(lambda: is_quiet(engine))
        assert not server.context.drain.active


def test_a_restarted_server_ends_the_answer_with_the_reason():
    engine = ScriptedEngine(lambda request: [batch(request, "partial")])
    with live(engine) as first, cutting_proxy(first.address) as proxy:
        client = HttpClient(proxy.url)
        try:
            request_id = client.submit(ask())
            wait_until(lambda: client.drain(request_id) is not None)
            with live(ScriptedEngine(lambda request: [])) as second:
                proxy._target = second.address
                proxy.cut()
                proxy.up = True
                last = drain_all(client, request_id)[-1]
        finally:
            client.close()
    assert last.finish_reason is FinishReason.ERROR
    assert "no longer has the request" in last.error
    assert "can be generated again" in last.error


def body_of(request_id, **fields):
    return {
        "model": "toy", "prompt": "x", "ignore_eos": True, "stream": True, "resumable": True,
        "request_id": request_id,
    } | fields  # fmt: skip


def events_of(response):
    decoder = SseDecoder()
    return [event for chunk in response.iter_bytes() for event in decoder.feed(chunk)]


def test_every_event_can_be_asked_for_again(paced):
    _, server = paced
    with httpx.stream(
        "POST", f"{server.url}/v1/completions", json=body_of("again", max_tokens=30), timeout=60
    ) as response:
        events = events_of(response)
    assert [one.number for one in events] == list(range(1, len(events) + 1))
    assert events[-1].data == b"[DONE]"
    for after in (0, 7, len(events) - 1, len(events)):
        headers = {"last-event-id": str(after)}
        with httpx.stream(
            "GET", f"{server.url}/streams/again", headers=headers, timeout=60
        ) as response:
            assert events_of(response) == events[after:]


def test_the_second_reader_takes_over_from_the_first(paced):
    _, server = paced
    with httpx.stream(
        "POST", f"{server.url}/v1/completions", json=body_of("two", max_tokens=300), timeout=60
    ) as first:
        chunks = first.iter_bytes()
        head = SseDecoder().feed(next(chunks))
        headers = {"last-event-id": str(head[-1].number)}
        with httpx.stream(
            "GET", f"{server.url}/streams/two", headers=headers, timeout=60
        ) as second:
            rest = events_of(second)
        for _ in chunks:  # it ends without an error
            pass
    text = "".join(
        choice["text"]
        for event in (*head, *rest)
        if event.data.startswith(b"{")
        for choice in json.loads(event.data)["choices"]
    )
    assert json.loads(rest[-2].data)["choices"][0]["finish_reason"] == "length"
    assert len(text.encode()) >= 290
    assert [one.number for one in (*head, *rest)] == list(range(1, len(head) + len(rest) + 1))


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"stream": False}, "resumable"),
        ({"request_id": None}, "request_id"),
    ],
)
def test_resumable_needs_a_stream_and_an_id(paced, change, param):
    _, server = paced
    body = body_of("r", max_tokens=1) | change
    response = httpx.post(f"{server.url}/v1/completions", json=body, timeout=60)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


def test_an_event_beyond_the_last_is_refused(paced):
    _, server = paced
    httpx.post(f"{server.url}/v1/completions", json=body_of("short", max_tokens=1), timeout=60)
    headers = {"last-event-id": "99"}
    response = httpx.get(f"{server.url}/streams/short", headers=headers, timeout=60)
    assert response.status_code == 400


def test_events_are_decoded_however_they_are_divided():
    stream = ': keep-alive\n\nid: 1\ndata: {"a": "x\u2028y"}\n\ndata: [DONE]\n\nid: 3\ndata: {"cut'
    expected = [SseEvent(1, '{"a": "x\u2028y"}'.encode()), SseEvent(None, b"[DONE]")]
    data = stream.encode()
    for size in range(1, len(data) + 1):
        decoder = SseDecoder()
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        assert [event for part in parts for event in decoder.feed(part)] == expected
