"""Responses that are kept: reading them, going on from them, and those in the background."""

import threading

import httpx
import pytest

from app.server.responses.store import ResponseStore
from engine.api.request import FinishReason
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.responses_api import BODY, URL, answering, kinds, parse, prompt_of, stream
from tests.server.scripted_engine import batch


@pytest.fixture
def http():
    with answering("Hello ", "there.") as client:
        yield client


def ask(http, expected=200, **fields):
    response = http.post(URL, json=BODY | fields)
    assert response.status_code == expected, response.text
    return response.json()


def get(http, path, expected=200, **params):
    response = http.get(path, params=params)
    assert response.status_code == expected, response.text
    return response.json()


def test_a_response_can_be_read_until_it_is_deleted(http):
    whole, streamed = ask(http), stream(http)[-1]["response"]
    for response in (whole, streamed):
        url = f"{URL}/{response['id']}"
        assert get(http, url) == response
        assert http.delete(url).json() == {
            "id": response["id"], "object": "response", "deleted": True
        }  # fmt: skip
        assert get(http, url, 404)["error"]["code"] == "response_not_found"
        assert http.delete(url).status_code == 404


def test_a_response_that_is_not_to_be_stored_is_not(http):
    response = ask(http, store=False)
    assert response["store"] is False
    get(http, f"{URL}/{response['id']}", 404)


def test_a_failed_response_is_kept_with_its_error():
    def failing(request):
        return [batch(request, "Hel"), batch(request, "", FinishReason.ERROR, "It broke.")]

    with answering(script=failing) as http:
        failed = stream(http)[-1]["response"]
        assert failed["error"]["message"] == "It broke."
        assert get(http, f"{URL}/{failed['id']}") == failed


def test_going_on_reads_all_that_led_to_it_but_no_instructions(http):
    first = ask(http, input="one", instructions="Obey.")
    second = ask(http, input=[{"role": "user", "content": "two"}], previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]
    ask(http, input="three", previous_response_id=second["id"])
    prompt = prompt_of(http)
    order = [prompt.index(word) for word in ("one", "two", "three")]
    assert order == sorted(order)
    assert prompt.count("Hello there.") == 2
    assert "Obey." not in prompt


def test_going_on_from_what_is_not_kept_is_refused(http):
    first = ask(http)
    second = ask(http, previous_response_id=first["id"])
    http.delete(f"{URL}/{first['id']}")
    for missing in ("resp_0", second["id"]):
        error = ask(http, 400, previous_response_id=missing)["error"]
        assert (error["param"], error["code"]) == (
            "previous_response_id",
            "previous_response_not_found",
        )


def test_input_items_come_in_pages(http):
    items = [{"role": "user", "content": f"{number}"} for number in range(5)]
    response = ask(http, input=items)
    url = f"{URL}/{response['id']}/input_items"
    page = get(http, url, limit=2)
    assert [one["content"][0]["text"] for one in page["data"]] == ["4", "3"]
    assert page["has_more"] is True
    assert page["first_id"] == page["data"][0]["id"]
    rest = get(http, url, after=page["last_id"], limit=100)
    assert [one["content"][0]["text"] for one in rest["data"]] == ["2", "1", "0"]
    assert rest["has_more"] is False
    first = get(http, url, order="asc", limit=1)["data"][0]
    assert first["content"] == [{"type": "input_text", "text": "0"}]
    assert (first["type"], first["role"], first["status"]) == ("message", "user", "completed")
    assert get(http, url, 400, after="msg_0")["error"]["param"] == "after"
    get(http, f"{URL}/resp_0/input_items", 404)


def test_a_reference_stands_for_an_item_that_is_kept(http):
    response = ask(http, input="first")
    item = response["output"][0]["id"]
    reference = {"type": "item_reference", "id": item}
    ask(http, input=[reference, {"id": item}, {"role": "user", "content": "again"}])
    assert prompt_of(http).count("Hello there.") == 2
    error = ask(http, 404, input=[{"type": "item_reference", "id": "msg_0"}])["error"]
    assert (error["param"], error["code"]) == ("input[0].id", "item_not_found")
    assert ask(http, 400, input=[{"type": "item_reference"}])["error"]["param"] == "input[0].id"


def test_a_store_in_a_file_survives_its_process(tmp_path):
    path = tmp_path / "folder" / "responses.db"
    store = ResponseStore(path)
    response = {"id": "resp_1", "previous_response_id": None, "output": [{"id": "msg_1"}]}
    store.add_response(response, [{"id": "msg_0"}])
    store.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = ResponseStore(path)
    assert again.response("resp_1") == response
    assert again.history("resp_1") == [{"id": "msg_0"}, {"id": "msg_1"}]
    again.close()


def some_response(number, previous=None, text=""):
    output = [{"id": f"msg_{number}", "text": text}]
    return {"id": f"resp_{number}", "previous_response_id": previous, "output": output}


def kept(store, numbers):
    return [number for number in numbers if store.item(f"msg_{number}") is not None]


def test_the_store_keeps_the_newest_by_use():
    clock = iter(range(1000)).__next__
    store = ResponseStore(clock=clock, max_responses=3)
    for number in range(3):
        store.add_response(some_response(number), [])
    store.response("resp_0")
    store.add_response(some_response(3), [])
    assert kept(store, range(4)) == [0, 2, 3]


def test_going_on_keeps_the_whole_chain_in_use():
    clock = iter(range(1000)).__next__
    store = ResponseStore(clock=clock, max_responses=3)
    store.add_response(some_response(0), [])
    store.add_response(some_response(1, "resp_0"), [])
    store.add_response(some_response(2), [])
    assert [one["id"] for one in store.history("resp_1")] == ["msg_0", "msg_1"]
    store.add_response(some_response(3, "resp_1"), [])
    assert kept(store, range(4)) == [0, 1, 3]


def test_the_store_is_bounded_by_size_and_age():
    now = [0.0]
    store = ResponseStore(clock=lambda: now[0], max_bytes=5000, max_age_s=100)
    for number in range(4):
        store.add_response(some_response(number, text="x" * 1500), [])
    assert kept(store, range(4)) == [1, 2, 3]
    now[0] = 99.0
    store.response("resp_3")
    now[0] = 150.0
    store.add_response(some_response(4), [])
    assert kept(store, range(5)) == [3, 4]
    store.update_response(some_response(4, text="y" * 10_000))
    assert kept(store, range(5)) == [4]  # the newest is kept, whatever its size


def test_an_update_does_not_bring_back_what_was_deleted():
    store = ResponseStore()
    store.add_response(some_response(0), [])
    store.delete_response("resp_0")
    store.update_response(some_response(0))
    assert kept(store, [0]) == []


@pytest.fixture(scope="module")
def slow():
    """An engine whose answers take about a second."""
    with (
        byte_engine(step_s=0.004, max_num_seqs=8) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        http.engine, http.server = engine, server
        yield http


LONG = {"max_output_tokens": 200, "ignore_eos": True, "temperature": 0}


def background(http, **fields):
    response = ask(http, background=True, **LONG | fields)
    assert (response["status"], response["background"], response["output"]) == ("queued", True, [])
    return f"{URL}/{response['id']}"


def ended(http, url):
    wait_until(lambda: get(http, url)["status"] not in ("queued", "in_progress"))
    return get(http, url)


def test_a_response_in_the_background_goes_on_alone(slow):
    url = background(slow)
    assert get(slow, url)["status"] == "in_progress"
    final = ended(slow, url)
    assert (final["status"], final["usage"]["output_tokens"]) == ("incomplete", 200)
    direct = ask(slow, **LONG)
    assert final["output"][0]["content"] == direct["output"][0]["content"]
    wait_until(lambda: is_quiet(slow.engine) and not slow.server.context.drain.active)


def test_a_stream_in_the_background_can_be_read_again_from_any_number(slow):
    fields = BODY | LONG | {"background": True, "stream": True}
    with slow.stream("POST", URL, json=fields) as response:
        begun = ""
        for text in response.iter_text():
            begun += text
            if begun.count("\n\n") > 20:
                break  # the connection is lost
    events = parse(begun[: begun.rindex("\n\n") + 2])
    assert kinds(events)[:3] == ["created", "queued", "in_progress"]
    last = events[-1]["sequence_number"]
    url = f"{URL}/{events[0]['response']['id']}"
    with slow.stream("GET", url, params={"stream": True, "starting_after": last}) as response:
        rest = parse("".join(response.iter_text()), first=last + 1)
    assert rest[-1]["type"] == "response.incomplete"
    text = "".join(one.get("delta", "") for one in (*events, *rest))
    assert text == rest[-1]["response"]["output"][0]["content"][0]["text"]
    whole = slow.get(url, params={"stream": True}).text
    assert parse(whole) == events + rest
    count = len(events) + len(rest)
    assert slow.get(url, params={"stream": True, "starting_after": count}).status_code == 400
    assert get(slow, url) == rest[-1]["response"]


def test_two_readers_get_the_same_events(slow):
    url = background(slow)
    texts = {}

    def read(number):
        texts[number] = httpx.get(f"{slow.base_url}{url}", params={"stream": True}, timeout=60).text

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parse(texts[0]) == parse(texts[1])


def test_a_response_in_the_background_can_be_cancelled(slow):
    url = background(slow)
    wait_until(lambda: get(slow, url)["output"])
    cancelled = slow.post(f"{url}/cancel").json()
    assert cancelled["status"] == "cancelled"
    assert cancelled["output"][0]["status"] == "incomplete"
    wait_until(lambda: is_quiet(slow.engine) and not slow.server.context.drain.active)
    assert get(slow, url) == cancelled
    assert slow.post(f"{url}/cancel").json() == cancelled
    events = parse(slow.get(url, params={"stream": True}).text)
    assert events[-1]["response"]["status"] == "cancelled"


def test_only_the_background_can_be_cancelled_and_read_again(http):
    url = f"{URL}/{ask(http)['id']}"
    assert http.post(f"{url}/cancel").status_code == 400
    assert http.post(f"{URL}/resp_0/cancel").status_code == 404
    assert http.get(url, params={"stream": True}).status_code == 400
    assert http.get(f"{URL}/resp_0", params={"stream": True}).status_code == 404
    error = ask(http, 400, background=True, store=False)["error"]
    assert error["param"] == "store"


def test_deleting_a_response_ends_it(slow):
    url = background(slow)
    assert slow.delete(url).status_code == 200
    wait_until(lambda: is_quiet(slow.engine) and not slow.server.context.drain.active)
    get(slow, url, 404)


def test_a_client_that_leaves_a_stream_ends_it(slow):
    with slow.stream("POST", URL, json=BODY | LONG | {"stream": True}) as response:
        next(response.iter_text())
    wait_until(lambda: is_quiet(slow.engine) and not slow.server.context.drain.active)


def test_the_drain_ends_what_runs_in_the_background():
    with byte_engine(step_s=0.01) as engine, live(engine, drain_s=0.05) as server:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            url = background(http)
            wait_until(lambda: get(http, url)["output"])
            server.server.request_exit()
            wait_until(lambda: is_quiet(engine))
        store = server.context.responses
        wait_until(lambda: store.response(url.rpartition("/")[2])["status"] == "failed")


def test_what_a_former_process_did_not_finish_has_failed(tmp_path):
    store = ResponseStore(tmp_path / "responses.db")
    response = some_response(0) | {"status": "in_progress", "error": None, "background": True}
    store.add_response(response, [])
    with answering("x") as http:
        object.__setattr__(http.server.context, "responses", store)
        assert get(http, f"{URL}/resp_0")["error"]["code"] == "server_error"
    store.close()


def test_a_page_of_another_site_cannot_cancel(slow):
    url = background(slow)
    refused = slow.post(f"{url}/cancel", headers={"origin": "https://elsewhere.example"})
    assert refused.status_code == 403
    assert slow.post(f"{url}/cancel").status_code == 200
