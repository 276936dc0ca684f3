"""The screen over the HTTP client: its event loop never waits for the server."""

import threading

import pytest

from engine.clients.http_client import HttpClient
from engine.clients.http_connection import HttpConnection
from engine.conversations.session import TreeSession
from engine.conversations.store import Store
from engine.conversations.tree import NodeStatus
from tests.server.byte_engine import byte_engine
from tests.server.cutting_proxy import cutting_proxy
from tests.server.live import live
from tests.tui.harness import Clock, Harness, make_app


@pytest.fixture(scope="module")
def server():
    with byte_engine() as engine, live(engine) as server:
        yield server


@pytest.fixture
def waits(monkeypatch):
    """The threads that waited for a round trip, with what they waited for."""
    found = []
    call = HttpConnection.call

    def recorded(self, work, **options):
        found.append((threading.current_thread(), work.__qualname__))
        return call(self, work, **options)

    monkeypatch.setattr(HttpConnection, "call", recorded)
    return found


async def test_no_key_waits_for_the_server(server, tmp_path, waits):
    with cutting_proxy(server.address, delay_s=0.05) as proxy:
        client = HttpClient(proxy.url)
        store = Store.open(tmp_path / "conversations.db")
        session = TreeSession(store, client, background=True)
        clock = Clock()
        app = make_app(client, session, clock, server=proxy.url)
        try:
            async with app.run_test(size=(120, 36)) as pilot:
                screen = Harness(app, pilot, client, session, clock)
                await screen.shown("toy", "ready")
                await screen.ask("hello")
                assert "hello" in screen.text  # at once, while the server has not seen it
                await screen.until(lambda: not session.generating, "the answer")
                await screen.press("shift+tab", "r")
                await screen.until(lambda: not session.generating, "the second answer")
                await screen.press("f10", "o")
                await screen.until(
                    lambda: any(text.startswith("Scheduling:") for text in screen.toasts),
                    "the notification",
                )
                answers = [one for one in session.path() if one.kind == "assistant"]
                assert [one.status for one in answers] == [NodeStatus.DONE]
        finally:
            session.close()
            store.close()
            client.close()
    assert waits
    assert [what for thread, what in waits if thread is threading.main_thread()] == []


async def test_a_server_that_is_away_is_named_with_the_whole_reason(tmp_path):
    client = HttpClient("http://127.0.0.1:9")
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client, background=True)
    clock = Clock()
    app = make_app(client, session, clock, server="http://127.0.0.1:9")
    try:
        async with app.run_test(size=(60, 20)) as pilot:
            screen = Harness(app, pilot, client, session, clock)
            await screen.shown("http://127.0.0.1:9", "failed", "Trying again.")
            await screen.ask("hello")
            assert screen.prompt.text == "hello"  # refused at once: nothing was sent
            assert any("does not answer" in text for text in screen.toasts)
    finally:
        session.close()
        store.close()
        client.close()
