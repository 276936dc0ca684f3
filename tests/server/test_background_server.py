import json
import logging
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import openai
import pytest

from agents.service.run_request import RunRequest
from app.commands.background_server import BackgroundServer
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.snapshot import EngineState
from tests.fakes.fake_run_service import FakeRunService
from tests.server.byte_engine import byte_engine, is_quiet, wait_until

BODY = {"model": "toy", "prompt": "x", "temperature": 0, "ignore_eos": True, "stream": True}


@contextmanager
def background(engine, *, port=0, api_key=None):
    server = BackgroundServer(engine, port=port, api_key=api_key)
    try:
        yield server
    finally:
        server.stop()


def test_an_openai_client_uses_the_engine_until_it_is_no_longer_served(engine):
    with background(engine) as server:
        assert server.url is None
        url = server.start()
        assert url == server.url
        assert url.startswith("http://127.0.0.1:")
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            done = client.completions.create(
                model="toy", prompt="x", max_tokens=3, extra_body={"ignore_eos": True}
            )
            assert done.usage.completion_tokens == 3
            server.stop()
            with pytest.raises(openai.APIConnectionError):
                client.models.list()
    assert server.url is None
    assert engine.snapshot().model is not None


def test_it_starts_again_on_the_same_port(engine):
    with background(engine) as server:
        url = server.start()
        server.stop()
        assert server.start(int(url.rpartition(":")[2])) == url
        assert httpx.get(f"{url}/ready").status_code == 200


def test_a_second_start_names_the_address(engine):
    with background(engine) as server:
        url = server.start()
        with pytest.raises(InvalidRequest, match=url):
            server.start()
        assert server.url == url


def test_a_taken_port_is_a_sentence(engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with background(engine, port=port) as server:
            with pytest.raises(PravahaError, match=f"Cannot listen on 127.0.0.1:{port}: "):
                server.start()
            assert server.url is None


def test_the_key_of_the_settings_is_required(engine):
    with background(engine, api_key="secret") as server:
        url = server.start()
        assert httpx.get(f"{url}/v1/models").status_code == 401
        key = {"Authorization": "Bearer secret"}
        assert httpx.get(f"{url}/v1/models", headers=key).status_code == 200


def test_stopping_ends_a_running_answer_with_an_error_and_keeps_the_engine():
    with byte_engine(step_s=0.05) as engine, background(engine) as server:
        url = server.start()
        body = BODY | {"max_tokens": 500}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=30) as response:
            lines = response.iter_lines()
            next(lines)
            server.stop()
            last = [line for line in lines if line.startswith("data: ")][-1]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "shutting_down"
        wait_until(lambda: is_quiet(engine))
        assert httpx.get(f"{server.start()}/ready").status_code == 200


def test_the_handlers_of_the_log_stay_open(engine, monkeypatch):
    closed = []
    handler = logging.NullHandler()
    monkeypatch.setattr(handler, "close", lambda: closed.append(handler))
    logging.getLogger().addHandler(handler)
    try:
        with background(engine) as server:
            server.start()
    finally:
        logging.getLogger().removeHandler(handler)
    assert not closed


def test_the_server_is_not_imported_before_it_starts():
    code = (
        "import sys, app.commands.background_server, app.tui.actions.serving\n"
        "print(sorted({'fastapi', 'uvicorn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_screens_agents_are_served_too(engine):
    service = FakeRunService()
    run = service.start(RunRequest("agent", "security_audit"))
    server = BackgroundServer(engine, port=0, api_key=None, run_service=service)
    try:
        listed = httpx.get(f"{server.start()}/v1/agents/runs").json()["data"]
    finally:
        server.stop()
    assert [one["id"] for one in listed] == [run]


def test_files_of_clients_are_kept_in_its_folder(engine, tmp_path):
    server = BackgroundServer(engine, port=0, api_key=None, retrieval_folder=tmp_path)
    ids = []
    for _ in range(2):  # it lets go of the folder when it stops
        url = server.start()
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            ids.append(client.files.create(file=("a.txt", b"kept"), purpose="assistants").id)
            assert [one.id for one in client.files.list(order="asc")] == ids
        server.stop()
    assert len(list((tmp_path / "files").iterdir())) == 2


def test_the_pages_of_the_settings_may_read_answers(engine):
    page = {"origin": "https://chat.example"}
    server = BackgroundServer(engine, port=0, api_key=None, cors_origins=(page["origin"],))
    try:
        response = httpx.get(f"{server.start()}/v1/models", headers=page)
    finally:
        server.stop()
    assert response.headers["access-control-allow-origin"] == page["origin"]


def test_every_page_is_refused_without_a_key(engine):
    server = BackgroundServer(engine, port=0, api_key=None, cors_origins=("*",))
    with pytest.raises(PravahaError, match="Refusing to answer every web page"):
        server.start()
    assert server.url is None


def test_a_client_cannot_unload_the_model_of_the_screen_by_keep_alive():
    with byte_engine() as engine, background(engine) as server:
        url = server.start()
        body = BODY | {"stream": False, "max_tokens": 2, "keep_alive": 0}
        for _ in range(2):
            assert httpx.post(f"{url}/v1/completions", json=body).status_code == 200
        assert engine.snapshot().state is EngineState.READY
