"""`pravaha launch` and the server that it finds, or starts."""

import socket
from contextlib import contextmanager

import httpx
import pytest

from app.commands.launched_server import find_server, served
from app.launch.clients import Server
from app.launch.errors import SettingsError
from app.runtime.opening import OpenClient
from app.settings.sources import load_settings
from engine.api.errors import PravahaError
from engine.clients.in_process import InProcessClient
from tests.server.byte_engine import new_byte_engine
from tests.server.live import live


def settings(tmp_path, **flags):
    environ = {"PRAVAHA_DATA_DIR": str(tmp_path), "PRAVAHA_CONFIG_DIR": str(tmp_path)}
    return load_settings(flags, environ=environ)


def test_a_running_server_is_found_with_its_model(server, tmp_path):
    host, port = server.address
    assert find_server(settings(tmp_path, port=port)) == Server(f"http://{host}:{port}", "toy")
    assert find_server(settings(tmp_path, attach=server.url)) == Server(server.url, "toy")


def test_a_key_is_used(engine, tmp_path):
    with live(engine, api_key="sk-1") as server:
        found = find_server(settings(tmp_path, attach=server.url, api_key="sk-1"))
        assert found == Server(server.url, "toy", "sk-1")
        with pytest.raises(PravahaError):
            find_server(settings(tmp_path, attach=server.url, api_key="sk-2"))


def test_nobody_at_the_address_means_that_a_server_is_to_be_started(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert find_server(settings(tmp_path, port=port)) is None
    with pytest.raises(PravahaError, match="does not answer"):
        find_server(settings(tmp_path, attach=f"http://127.0.0.1:{port}"))


def test_a_port_of_another_program_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match="choose another --port"):
            find_server(settings(tmp_path, port=port))


def test_a_server_is_started_and_stopped(tmp_path, monkeypatch):
    @contextmanager
    def opened(settings, progress):
        engine = new_byte_engine()
        client = InProcessClient(engine)
        try:
            yield OpenClient(client, client.bos_id, engine.start, engine)
        finally:
            client.close()

    monkeypatch.setattr("app.runtime.opening.open_client", opened)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    chosen = settings(tmp_path, port=port)
    with served(chosen):
        assert find_server(chosen) == Server(f"http://127.0.0.1:{port}", "toy")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/health")
