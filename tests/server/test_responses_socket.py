"""The Responses API over WebSocket, with the official client and with raw messages."""

import asyncio
import json

import httpx
import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from app.server.calls.response_socket import MAX_WAITING
from app.server.wire.json_size import MAX_CONTAINERS, UNCOUNTED_BYTES
from app.server.wire.large_body import MAX_LARGE_BODIES
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live
from tests.server.responses_api import URL, answering, prompt_of
from tests.server.scripted_engine import ScriptedEngine, batch, words

LAST = {"response.completed", "response.failed", "response.incomplete", "error"}


@pytest.fixture(scope="module")
def http():
    with answering("Hello ", "there.", context=4096) as client:
        yield client


def open_socket(http, path=URL, **options):
    url = str(http.base_url.copy_with(scheme="ws", path=path))
    return connect(url, proxy=None, **options)


def create(**fields):
    return json.dumps({"type": "response.create", "model": "toy", "input": "hi"} | fields)


def answer(socket):
    """The messages up to the last one of a response."""
    found = []
    while not found or found[-1]["type"] not in LAST:
        found.append(json.loads(socket.recv(timeout=60)))
    return found


def test_the_official_client_creates_responses(http):
    with (
        openai.OpenAI(base_url=f"{http.base_url}/v1", api_key="none") as api,
        api.responses.connect() as connection,
    ):
        for text in ("hi", "again"):
            connection.send({"type": "response.create", "model": "toy", "input": text})
            kinds = []
            for event in connection:
                kinds.append(event.type)
                if event.type == "response.completed":
                    break
            assert event.response.output_text == "Hello there."
            assert kinds[0] == "response.created"
            assert "response.output_text.delta" in kinds


def test_the_asynchronous_client_too(http):
    async def asked():
        async with (
            openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="none") as api,
            api.responses.connect() as connection,
        ):
            await connection.send({"type": "response.create", "model": "toy", "input": "hi"})
            async for event in connection:
                if event.type == "response.completed":
                    return event.response.output_text
        raise AssertionError("no last event")

    assert asyncio.run(asked()) == "Hello there."


def test_the_messages_are_the_events_of_a_stream(http):
    with open_socket(http) as socket:
        socket.send(create(stream_id="lane", instructions="Be brief."))
        events = answer(socket)
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    assert {one["stream_id"] for one in events} == {"lane"}
    assert "Be brief." in prompt_of(http)
    stored = http.get(f"{URL}/{events[-1]['response']['id']}").json()
    assert stored == events[-1]["response"]


def test_messages_that_wait_are_answered_in_their_order(http):
    with open_socket(http) as socket:
        for text in ("one", "two", "three"):
            socket.send(create(metadata={"n": text}))
        found = [answer(socket)[-1]["response"]["metadata"]["n"] for _ in range(3)]
    assert found == ["one", "two", "three"]


def test_a_response_that_is_not_kept_is_gone_on_from_on_its_connection(http):
    with open_socket(http) as socket:
        socket.send(create(input="the first", store=False))
        first = answer(socket)[-1]["response"]
        socket.send(create(input="the second", store=False, previous_response_id=first["id"]))
        second = answer(socket)[-1]["response"]
        assert second["previous_response_id"] == first["id"]
        prompt = prompt_of(http)
        assert prompt.index("the first") < prompt.index("Hello there.") < prompt.index("the second")
        socket.send(create(input="the third", store=False, previous_response_id=second["id"]))
        assert answer(socket)[-1]["type"] == "response.completed"
        assert "the first" in prompt_of(http)
        # Only the last one is in memory.
        socket.send(create(store=False, previous_response_id=first["id"]))
        (refused,) = answer(socket)
        assert refused["error"]["code"] == "previous_response_not_found"
        assert refused["status"] == 400
    with open_socket(http) as other:
        other.send(create(previous_response_id=second["id"]))
        assert answer(other)[0]["error"]["code"] == "previous_response_not_found"
    assert http.get(f"{URL}/{second['id']}").status_code == 404


@pytest.mark.parametrize(
    "fields", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}]
)
def test_a_warm_up_reads_the_prompt_and_is_gone_on_from(fields):
    # As Codex begins a turn.
    with (
        byte_engine() as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url) as http,
        open_socket(http) as socket,
    ):
        socket.send(create(input="the first", store=False, **fields))
        warm = answer(socket)[-1]
        assert (warm["type"], warm["response"]["output"]) == ("response.completed", [])
        assert warm["response"]["usage"]["output_tokens"] == 0
        going_on = {"store": False, "previous_response_id": warm["response"]["id"]}
        socket.send(create(input=[], max_output_tokens=3, ignore_eos=True, **going_on))
        done = answer(socket)[-1]["response"]
    assert done["usage"]["output_tokens"] == 3
    assert done["usage"]["input_tokens_details"]["cached_tokens"] > 0


@pytest.mark.parametrize(
    ("message", "status", "param", "said"),
    [
        ("{", 400, None, "not valid JSON"),
        ("[]", 400, None, "JSON object"),
        ('{"type": "session.update"}', 400, "type", "response.create"),
        (create(background=True), 400, "background", "ends with its connection"),
        (create(model="gpt-9"), 404, "model", "gpt-9"),
        (create(temperature="x"), 400, "temperature", "temperature"),
        (b'{"type": "response.create", "model": "toy"}', 400, "input", "empty"),
    ],
)
def test_a_message_that_cannot_be_answered_is_told_why_and_the_connection_stays(
    http, message, status, param, said
):
    with open_socket(http) as socket:
        socket.send(message)
        (error,) = answer(socket)
        assert (error["type"], error["status"], error["error"]["param"]) == ("error", status, param)
        assert said in error["error"]["message"]
        socket.send(create())
        assert answer(socket)[-1]["type"] == "response.completed"


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("kind", ["response.create", "response.steer"])
def test_a_message_that_nests_too_deep_to_be_passed_on_is_refused(http, kind):
    with open_socket(http) as socket:
        socket.send(create(type=kind, input=nested(300), stream_id="lane"))
        (error,) = answer(socket)
        assert (error["status"], error["stream_id"]) == (400, "lane")
        assert error["error"]["message"] == "The message nests too deep."
        socket.send(create())
        assert answer(socket)[-1]["type"] == "response.completed"


def test_a_message_is_limited_before_it_is_parsed_as_a_body_is():
    limit = 100_000
    with (
        live(ScriptedEngine(words("ok")), max_body_bytes=limit, max_image_bytes=limit) as server,
        httpx.Client(base_url=server.url) as http,
        open_socket(http) as socket,
    ):
        # None is JSON, so that a parser would say something else.
        for message, status, code in (
            ("x" * (limit + 1), 413, "request_too_large"),
            ("[" * (MAX_CONTAINERS + 1) + "x" * UNCOUNTED_BYTES, 400, "too_many_values"),
            ("x" * limit, 400, "invalid_json"),
        ):
            socket.send(message)
            (error,) = answer(socket)
            assert (error["status"], error["error"]["code"]) == (status, code)
            over_http = http.post(URL, content=message)
            assert (over_http.status_code, over_http.json()["error"]["code"]) == (status, code)


def test_large_messages_that_wait_have_the_places_of_large_bodies():
    limit = 2_000
    engine = ScriptedEngine(pausing)
    with (
        live(engine, max_body_bytes=limit) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        large = create(input="hi", metadata={"image": "data:image/png;base64," + "A" * limit})
        with open_socket(http) as first, open_socket(http) as second:
            first.send(create())
            while json.loads(first.recv(timeout=60))["type"] != "response.output_text.delta":
                pass
            for _ in range(MAX_LARGE_BODIES):
                first.send(large)
            first.send("{")  # what is sent before it has been taken by then
            while (event := json.loads(first.recv(timeout=60)))["type"] != "error":
                pass
            assert event["error"]["code"] == "invalid_json"
            second.send(large)
            (error,) = answer(second)
            assert (error["status"], error["error"]["code"]) == (429, "too_many_large_requests")
        with open_socket(http) as third:

            def is_taken():
                third.send(large)
                return answer(third)[-1]["error"]["code"] != "too_many_large_requests"

            wait_until(is_taken)  # the places of a client that has left are free


def test_a_prompt_that_is_too_long_fails_as_in_a_stream(http):
    with open_socket(http) as socket:
        socket.send(create(input="word " * 2000))
        last = answer(socket)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "context_length_exceeded"


def test_steering_is_refused_in_its_own_event(http):
    with open_socket(http) as socket:
        socket.send('{"type": "response.steer", "previous_response_id": "resp_1", "input": "no"}')
        event = json.loads(socket.recv(timeout=60))
    assert (event["type"], event["error"]["code"]) == (
        "response.steer.failed", "steering_not_supported",
    )  # fmt: skip
    assert event["steer"] == {"input": "no", "previous_response_id": "resp_1"}


def pausing(request):
    """A response that never ends."""
    return [batch(request, "Hello")]


def test_a_client_that_leaves_stops_its_response():
    engine = ScriptedEngine(pausing)
    with live(engine) as server, httpx.Client(base_url=server.url) as http:
        with open_socket(http) as socket:
            socket.send(create())
            while json.loads(socket.recv(timeout=60))["type"] != "response.output_text.delta":
                pass
        assert engine.was_aborted.wait(30)
        wait_until(lambda: server.context.drain.active == 0)


def test_too_many_messages_are_refused():
    engine = ScriptedEngine(pausing)
    with (
        live(engine) as server,
        httpx.Client(base_url=server.url) as http,
        open_socket(http) as socket,
    ):
        for _ in range(MAX_WAITING + 2):  # one is being answered
            socket.send(create())
        while (event := json.loads(socket.recv(timeout=60)))["type"] != "error":
            pass
        assert (event["status"], event["error"]["code"]) == (429, "too_many_messages")


def test_the_drain_ends_what_runs_and_the_connection():
    engine = ScriptedEngine(pausing)
    with (
        live(engine, drain_s=0.0) as server,
        httpx.Client(base_url=server.url) as http,
        open_socket(http) as idle,
        open_socket(http) as busy,
    ):
        busy.send(create())
        while json.loads(busy.recv(timeout=60))["type"] != "response.output_text.delta":
            pass
        server.server.request_exit()
        last = answer(busy)[-1]
        assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
        for socket in (busy, idle):
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=60)
            assert closed.value.rcvd.code == 1012


def test_a_key_is_needed_as_over_http():
    with live(ScriptedEngine(words("ok")), api_key="sk-right") as server:
        url = server.url.replace("http", "ws") + URL
        for headers in ({}, {"Authorization": "Bearer sk-wrong"}):
            with pytest.raises(InvalidStatus) as refused:
                connect(url, additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 401
            assert json.loads(refused.value.response.body)["error"]["code"] == "invalid_api_key"
        with connect(
            url, additional_headers={"Authorization": "Bearer sk-right"}, proxy=None
        ) as socket:
            socket.send(create())
            assert answer(socket)[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://evil.example", 403), ("null", 403), ("http://localhost:3000", None), (None, None)],
)
def test_pages_of_other_sites_are_refused(http, origin, status):
    headers = {} if origin is None else {"Origin": origin}
    if status is None:
        with open_socket(http, additional_headers=headers) as socket:
            socket.send(create())
            assert answer(socket)[-1]["type"] == "response.completed"
        return
    with pytest.raises(InvalidStatus) as refused:
        open_socket(http, additional_headers=headers)
    assert refused.value.response.status_code == status


def test_a_name_that_is_not_of_this_machine_is_refused(http):
    upgrade = {
        "host": "evil.example", "connection": "Upgrade", "upgrade": "websocket",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13",
    }  # fmt: skip
    assert http.get(URL, headers=upgrade).status_code == 403
    assert http.get(URL).status_code == 405  # no upgrade


def test_other_paths_have_no_sockets(http):
    with pytest.raises(InvalidStatus) as refused:
        open_socket(http, path="/v1/chat/completions")
    assert refused.value.response.status_code == 403
    with open_socket(http, path=f"{URL}/") as socket:
        socket.send(create())
        assert answer(socket)[-1]["type"] == "response.completed"
