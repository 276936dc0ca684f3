import httpx

from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words


def test_the_root_says_what_this_is_without_a_key():
    with (
        live(ScriptedEngine(words("ok")), api_key="sk-1") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        for path in ("/", "//", "/?x=1"):
            response = client.get(path)
            assert response.status_code == 200
            assert response.text.startswith("Pravāha is running.")
        probe = client.head("/")
        assert (probe.status_code, probe.content) == (200, b"")
        for named in ("/v1/models", "/v1/chat/completions", "/v1/messages", "/health"):
            assert named in response.text
            assert client.get(named).status_code != 404
