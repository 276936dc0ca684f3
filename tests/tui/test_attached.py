"""The screen over the HTTP client: its event loop never waits for the server."""

import re
import threading
from contextlib import asynccontextmanager
from functools import partial

import pytest

from app.commands.recording import open_replay, recorded_ids, write_start
from app.settings.settings import Settings
from app.tui.input_events import InputRecorder
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams
from engine.clients.http_client import HttpClient
from engine.clients.http_connection import HttpConnection
from engine.clients.recording_client import Recording, RecordingClient
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.ulid import new_ulid
from tests.server.byte_engine import byte_engine
from tests.server.cutting_proxy import cutting_proxy
from tests.server.live import live
from tests.tui.harness import Clock, Harness, make_app


@pytest.fixture(scope="module")
def server():
    with byte_engine() as engine, live(engine) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_round_trip_on_the_event_loop(monkeypatch):
    """Whatever waits for the server on the thread of Textual's event loop fails."""
    call = HttpConnection.call

    def guarded(self, work, **options):
        if threading.current_thread() is threading.main_thread():
            work.close()
            raise AssertionError(f"the event loop would wait for {work.__qualname__}")
        return call(self, work, **options)

    monkeypatch.setattr(HttpConnection, "call", guarded)


@asynccontextmanager
async def attached(url, folder, *, size=(140, 40), recording=None):
    """The screen over the HTTP client."""
    client = HttpClient(url)
    seen = client if recording is None else RecordingClient(client, recording)
    store = Store.open(folder / "conversations.db")
    sampling = SamplingChoice(SamplingParams(temperature=0.0, max_tokens=8))
    new_id = new_ulid if recording is None else recorded_ids(recording)
    session = TreeSession(store, seen, sampling=sampling, background=True, new_id=new_id)
    clock = Clock()
    inputs = None if recording is None else InputRecorder(partial(recording.write, "input"))
    app = make_app(seen, session, clock, server=url, inputs=inputs)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Harness(app, pilot, seen, session, clock)
        for failure in app.failures.first:
            raise failure
    finally:
        session.close()
        store.close()
        client.close()


async def answered(screen):
    await screen.until(lambda: not screen.session.answers.running, "the answer")


async def test_no_key_waits_for_the_server(server, tmp_path):
    """Walks every action that asks about tokens, templates, prices or KV, or submits a request."""
    with cutting_proxy(server.address, delay_s=0.05) as proxy:
        async with attached(proxy.url, tmp_path) as screen:
            (tmp_path / "notes.txt").write_text("water")
            await screen.shown("toy", "ready")
            await screen.ask("hello")
            assert "hello" in screen.text  # at once, while the server has not seen it
            await answered(screen)
            await screen.press("shift+tab", "r")
            await answered(screen)
            # Tokens: the cursor, the price of a fork at it, the heat map, alternatives, a forced token.
            await screen.press("L", "L", "t")
            await screen.shown("token 2/", "f fork 9 tok")
            await screen.press("full_stop")
            await screen.shown("Alternatives")
            await screen.gone("computing")
            await screen.press("j", "enter")
            await screen.until(lambda: screen.session.path()[-1].fork_token == 2, "the fork")
            await answered(screen)
            # The KV of the path.
            await screen.press("shift+tab", "w")
            await screen.until(lambda: any("Computed" in text for text in screen.toasts), "warmth")
            await screen.press("p")
            await screen.until(
                lambda: any("pinned" in text.lower() for text in screen.toasts), "the pin"
            )
            await screen.press("v")
            await screen.until(lambda: any("KV pool" in text for text in screen.toasts), "blocks")
            await screen.press("escape", "shift+tab")
            # Comparing, several answers, and what they would cost.
            await screen.press("c")
            await screen.shown("part at token")
            await screen.press("escape", "x")
            await screen.shown("how many answers")
            await screen.press("2")
            await answered(screen)
            await screen.press("escape", "k")
            await screen.until(
                lambda: re.search(r"f fork \d+ tok", screen.text), "the price in the status bar"
            )
            # A file, and a message that is too long.
            await screen.ask(f"@{tmp_path / 'notes.txt'}")
            await answered(screen)
            assert "water" in screen.session.path()[-2].text
            await screen.ask("long " * 80)
            await screen.shown("Context full")
            await screen.press("escape")
            assert screen.prompt.text.startswith("long long")


async def test_a_recording_of_an_attached_screen_plays_the_same_conversation(server, tmp_path):
    recording = Recording(tmp_path / "recording")
    async with attached(server.url, tmp_path, recording=recording) as screen:
        write_start(recording, screen.session, Settings(attach=server.url), theme=None)
        await screen.shown("toy", "ready")
        await screen.type("hello")
        await screen.press("enter")
        await answered(screen)
        await screen.press("shift+tab", "L", "L", "f")
        await answered(screen)
        said = [(one.text, one.fork_token) for one in screen.session.path()]
    recording.close()
    assert recording.error is None
    assert said[-1][1] == 1
    with open_replay(recording.path, speed=4.0) as replay:
        app = make_app(
            replay.client, replay.session, Clock(), inputs=replay.inputs, server=server.url
        )
        async with app.run_test(size=(140, 40)) as pilot:
            screen = Harness(app, pilot, replay.client, replay.session, Clock())
            replay.inputs.start(app)
            await screen.until(
                lambda: [(one.text, one.fork_token) for one in replay.session.path()] == said,
                "the same conversation",
            )


async def test_a_server_that_is_away_is_named_with_the_whole_reason(tmp_path):
    url = "http://127.0.0.1:9"
    async with attached(url, tmp_path, size=(60, 20)) as screen:
        await screen.shown(url, "failed", "Trying again.")
        await screen.ask("hello")
        assert screen.prompt.text == "hello"  # refused at once: nothing was sent
        assert any("does not answer" in text for text in screen.toasts)
