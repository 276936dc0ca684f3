"""`GET /v1/models` for the clients of both APIs."""

from datetime import datetime

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
