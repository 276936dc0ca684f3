import httpx
import pytest

from tests.server.byte_engine import is_quiet, wait_until
from tests.server.malformed import malformed_bodies, valid_body

CASES = malformed_bodies(240, seed=20261121)


@pytest.mark.parametrize("chunk", range(8))
def test_malformed_bodies_are_refused_and_affect_no_other_request(client, engine, chunk):
    cases = CASES[chunk::8]
    assert len(cases) == 30
    for path, body in cases:
        response = client.post(path, content=body, headers={"content-type": "application/json"})
        assert 400 <= response.status_code < 500, (path, body[:200], response.text)
        error = response.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}, body[:200]
        assert error["message"], body[:200]
    good = client.post("/v1/completions", json=valid_body("/v1/completions"))
    assert good.status_code == 200
    wait_until(lambda: is_quiet(engine))


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "multipart/form-data; boundary=x", "json"]
)
def test_the_wrong_content_type_of_a_web_page_is_refused(client, content_type):
    headers = {"content-type": content_type, "origin": "https://page.example"}
    response = client.post("/v1/completions", content=b'{"model":"toy"}', headers=headers)
    assert response.status_code == 415
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/apply-template"])
def test_the_other_endpoints_too(client, path):
    for _, body in malformed_bodies(35, seed=1):
        response = client.post(path, content=body, headers={"content-type": "application/json"})
        assert response.status_code < 500
        if response.status_code != 200:
            assert "error" in response.json()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_those_of_another_api_too(client, path):
    for _, body in malformed_bodies(240, seed=2):
        response = client.post(path, content=body, headers={"content-type": "application/json"})
        assert response.status_code < 500, body[:200]
        if response.status_code != 200:
            assert response.json()["error"]["type"] == "invalid_request_error", body[:200]


def test_the_server_still_answers(client):
    assert client.get("/ready").status_code == httpx.codes.OK
