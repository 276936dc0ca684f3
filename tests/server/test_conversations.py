"""`/v1/conversations`, and responses that follow a conversation."""

import pytest

from tests.server.responses_api import BODY, URL, answering, prompt_of, stream

CONVERSATIONS = "/v1/conversations"


@pytest.fixture
def http():
    with answering("Hello ", "there.") as client:
        yield client


def post(http, path, expected=200, **fields):
    response = http.post(path, json=fields)
    assert response.status_code == expected, response.text
    return response.json()


def texts(http, conversation, **params):
    page = http.get(f"{CONVERSATIONS}/{conversation}/items", params={"order": "asc"} | params)
    return [one["content"][0]["text"] for one in page.json()["data"]]


def test_a_conversation_is_created_changed_and_deleted(http):
    made = post(http, CONVERSATIONS, metadata={"topic": "a"})
    url = f"{CONVERSATIONS}/{made['id']}"
    assert (made["object"], made["metadata"]) == ("conversation", {"topic": "a"})
    assert http.get(url).json() == made
    assert post(http, url, metadata={"topic": "b"}) == made | {"metadata": {"topic": "b"}}
    assert http.delete(url).json() == {
        "id": made["id"], "object": "conversation.deleted", "deleted": True
    }  # fmt: skip
    for method in (http.get, http.delete):
        assert method(url).json()["error"]["code"] == "conversation_not_found"
    post(http, url, 404, metadata={})
    post(http, f"{url}/items", 404, items=[{"role": "user", "content": "x"}])
    assert http.get(f"{url}/items").status_code == 404


def test_items_are_added_read_and_deleted(http):
    made = post(http, CONVERSATIONS, items=[{"role": "user", "content": "one"}])
    url = f"{CONVERSATIONS}/{made['id']}/items"
    added = post(
        http,
        url,
        items=[{"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}],
    )
    assert [one["content"][0]["type"] for one in added["data"]] == ["output_text", "input_text"]
    assert (added["first_id"], added["last_id"]) == (added["data"][0]["id"], added["data"][1]["id"])
    assert texts(http, made["id"]) == ["one", "two", "three"]
    assert texts(http, made["id"], order="desc", limit=1) == ["three"]
    item = added["data"][0]
    assert http.get(f"{url}/{item['id']}").json() == item
    assert http.delete(f"{url}/{item['id']}").json() == made
    assert texts(http, made["id"]) == ["one", "three"]
    assert http.get(f"{url}/{item['id']}").json()["error"]["code"] == "item_not_found"
    assert http.delete(f"{url}/{item['id']}").status_code == 404


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{}], "items[0]"),
        ([{"role": "user", "content": "x"}, {"role": "robot", "content": "x"}], "items[1].role"),
        ([{"role": "user", "content": "x"}] * 21, "items"),
    ],
)
def test_items_that_no_model_could_read_are_refused(http, items, param):
    assert post(http, CONVERSATIONS, 400, items=items)["error"]["param"] == param


def test_responses_follow_their_conversation(http):
    made = post(http, CONVERSATIONS, items=[{"role": "user", "content": "zero"}])
    first = post(http, URL, **BODY | {"input": "one", "conversation": made["id"]})
    assert first["conversation"] == {"id": made["id"]}
    stream(http, input="two", conversation={"id": made["id"]}, store=False)
    assert texts(http, made["id"]) == ["zero", "one", "Hello there.", "two", "Hello there."]
    prompt = prompt_of(http)
    places = [prompt.index(word) for word in ("zero", "one", "Hello there.", "two")]
    assert places == sorted(places)
    http.delete(f"{URL}/{first['id']}")
    assert len(texts(http, made["id"])) == 5


def test_a_conversation_that_is_not_there_is_named(http):
    error = post(http, URL, 404, **BODY | {"conversation": "conv_0"})["error"]
    assert (error["param"], error["code"]) == ("conversation", "conversation_not_found")
    made = post(http, CONVERSATIONS)["id"]
    first = post(http, URL, **BODY)["id"]
    both = {"conversation": made, "previous_response_id": first}
    assert post(http, URL, 400, **BODY | both)["error"]["param"] == "conversation"
