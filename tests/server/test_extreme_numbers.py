"""Every field of every endpoint with extreme numbers: an answer or a refusal, no failure."""

import json

import httpx
import pytest

from app.server.app import create_app
from app.server.middleware.auth import walk_routes
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.faces import FACES, places, with_value
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

NUMBERS = (
    -1, 0, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 1e308, -1e308, 5e-324,
    -0.0, 0.1,
)  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with byte_engine(context=1024) as running:
        yield running


@pytest.fixture(scope="module")
def client(engine):
    with live(engine) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        yield http


def declared(path):
    """The fields that the body of an endpoint declares, by the names that clients use."""
    for route in walk_routes(create_app(ScriptedEngine(words("ok"))).routes):
        if route.path == path and route.body_field is not None:
            model = route.body_field.field_info.annotation
            return [field.alias or name for name, field in model.model_fields.items()]
    return []


def test_the_fields_are_found():
    assert "dry_penalty_last_n" in declared("/v1/chat/completions")
    assert "n_predict" in declared("/completion")
    assert all(len(declared(path)) >= 1 for path in FACES)


@pytest.mark.parametrize("path", FACES)
def test_extreme_numbers_are_answered_or_refused(client, engine, path):
    body = FACES[path]
    where = sorted({*places(body), *((name,) for name in declared(path))}, key=str)
    for place in where:
        for number in NUMBERS:
            for value in (number, [number]):
                content = json.dumps(with_value(body, place, value))
                answer = client.post(
                    path, content=content, headers={"content-type": "application/json"}
                )
                assert answer.status_code < 500, (place, value, answer.text)
    # A `keep_alive` of almost nothing has unloaded the model, as it should.
    again = client.post("/v1/completions", json=FACES["/v1/completions"] | {"keep_alive": -1})
    assert again.status_code == 200
    assert client.get("/ready").status_code == 200
    wait_until(lambda: is_quiet(engine))
