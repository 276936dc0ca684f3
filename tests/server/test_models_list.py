"""`GET /v1/models` for the clients of both APIs."""

from datetime import datetime
from types import SimpleNamespace

import httpx
import pytest

from tests.server.live import live
from tests.server.scripted_engine import INFO, ScriptedEngine, words


@pytest.fixture
def client():
    with (
        live(ScriptedEngine(words("ok"))) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        yield http


def test_a_model_has_the_members_of_both(client):
    model = client.get("/v1/models/toy").json()
    assert {
        name: model[name] for name in ("id", "object", "type", "display_name", "lifecycle")
    } == {
        "id": "toy",
        "object": "model",
        "type": "model",
        "display_name": "toy",
        "lifecycle": "active",
    }
    created = datetime.fromisoformat(model["created_at"])
    assert created.utcoffset() is not None
    assert created.timestamp() == model["created"]
    assert model["max_input_tokens"] == model["max_tokens"] == INFO.context_length


def test_the_list_is_a_single_page(client):
    page = client.get("/v1/models?limit=20").json()
    assert (page["object"], page["has_more"]) == ("list", False)
    assert [one["id"] for one in page["data"]] == [page["first_id"]] == [page["last_id"]] == ["toy"]


@pytest.fixture
def two():
    """A server with a second model in its list."""
    engine = ScriptedEngine(words("ok"))
    engine.embedder = SimpleNamespace(name="minilm", installed=True, loaded=False)
    with live(engine) as server, httpx.Client(base_url=server.url) as http:
        yield http


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ("", ["toy", "minilm"], False),
        ("limit=1", ["toy"], True),
        ("limit=2", ["toy", "minilm"], False),
        ("limit=1&after_id=toy", ["minilm"], False),
        ("after_id=minilm", [], False),
        ("limit=1&before_id=minilm", ["toy"], False),
        ("before_id=toy", [], False),
        ("lifecycle[]=active", ["toy", "minilm"], False),
        ("lifecycle[]=retired&lifecycle[]=deprecated", [], False),
    ],
)
def test_anthropics_parameters_of_pages(two, query, ids, has_more):
    page = two.get(f"/v1/models?{query}").json()
    assert [one["id"] for one in page["data"]] == ids
    assert page["has_more"] is has_more
    assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("after_id=gpt-9", "after_id"),
        ("before_id=gpt-9", "before_id"),
        ("limit=0", "limit"),
        ("lifecycle[]=old", "lifecycle[][0]"),
    ],
)
def test_a_page_that_there_is_not_is_refused(two, query, param):
    response = two.get(f"/v1/models?{query}")
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
