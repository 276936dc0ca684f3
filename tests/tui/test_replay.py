"""A session with the fake engine is recorded, and its replay shows the same screen."""

import asyncio
import json
import time
from functools import partial

import pytest

from app.commands.recording import (
    open_replay,
    recorded_client,
    recorded_ids,
    refuse_unrecorded,
    write_start,
)
from app.settings.errors import ConfigurationError
from app.settings.settings import Settings
from app.tui.app import PravahaApp
from app.tui.input_events import InputRecorder, from_json, to_json
from engine.api.errors import InvalidRequest
from engine.clients.recording_client import Recording
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.thinking import Thinking
from tests.fakes.fake_client import FakeClient
from tests.tui.harness import NOW

SIZE = (100, 30)


def rows(app):
    strips = app.screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in strips]


async def until(condition, app):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "\n".join(rows(app))
        await asyncio.sleep(0.01)


async def test_a_replay_shows_what_was_recorded(tmp_path):
    engine = FakeClient("An answer of six words, here.", "Another one.")
    recording = Recording(tmp_path / "r", time.monotonic)
    client = recorded_client(engine, recording)
    store = Store.open(tmp_path / "c.db")
    session = TreeSession(store, client, new_id=recorded_ids(recording), stop_repetition=False)
    write_start(recording, session, Settings(), theme=None)
    app = PravahaApp(
        client, session, version="0", wall_clock=lambda: NOW,
        inputs=InputRecorder(partial(recording.write, "input")),
    )  # fmt: skip
    async with app.run_test(size=SIZE) as pilot:
        for key in "hello":
            await pilot.press(key)
        await pilot.press("enter")
        await until(lambda: session.answers.generating, app)
        engine.finish()
        await until(lambda: not session.answers.generating, app)
        await pilot.press("shift+tab", "r")
        await until(lambda: session.answers.generating, app)
        engine.finish()
        await until(lambda: not session.answers.generating, app)
        await until(lambda: app.frame_clock.sleeping, app)
        texts = [node.text for node in session.path()]
    session.close()
    store.close()
    recording.close()
    assert texts == ["hello", "Another one."]

    with open_replay(tmp_path / "r", speed=4.0) as replay:
        again = PravahaApp(
            replay.client, replay.session, version="0", wall_clock=lambda: NOW, inputs=replay.inputs,
        )  # fmt: skip
        async with again.run_test(size=SIZE) as pilot:
            replay.inputs.start(again)
            await pilot.press("x")  # the user's own keys do not reach the prompt
            await until(lambda: [node.text for node in replay.session.path()] == texts, again)
            await until(lambda: not replay.session.answers.generating, again)
            assert len(replay.session.tree) == 3
            assert "hello" in "\n".join(rows(again))
            assert "x" not in again.query_one("#prompt").text


@pytest.mark.parametrize(
    "data",
    [
        ["key", "a", "a"],
        ["key", "enter", "\r"],
        ["paste", "many\nlines"],
        ["mouse", "MouseDown", 3, 4, 0, 0, 1, False, False, True],
    ],
)
def test_input_events_have_a_json_form(data):
    assert to_json(from_json(data)) == data


@pytest.mark.parametrize(
    "data", [[], ["key"], ["mouse", "Exit", 1, 2, 3, 4, 5, True, True, True], ["paste", 3]]
)
def test_what_is_no_input_event_is_refused(data):
    with pytest.raises(InvalidRequest, match="input event"):
        from_json(data)


@pytest.mark.parametrize("text", ["", "not json\n", '[0, "start", {"version": 9}]\n', "\x00\xff"])
def test_a_file_that_is_no_recording_is_refused(tmp_path, text):
    (tmp_path / "r").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidRequest, match="recording"), open_replay(tmp_path / "r"):
        pass


@pytest.fixture
def recorded(tmp_path):
    """Records a message and its answer; the path of the file."""

    def record(engine, thinking):
        recording = Recording(tmp_path / "r", time.monotonic)
        client = recorded_client(engine, recording)
        store = Store.open(tmp_path / "c.db")
        session = TreeSession(store, client, new_id=recorded_ids(recording))
        session.answers.thinking = thinking
        write_start(recording, session, Settings(), theme=None)
        session.messages.send("hi")
        engine.finish()
        while session.answers.generating:
            session.pump()
        session.close()
        store.close()
        recording.close()
        return recording.path

    return record


def test_a_replay_asks_for_the_thinking_that_was_asked_for(recorded):
    path = recorded(FakeClient("An answer."), Thinking(False, "low", 20))
    with open_replay(path, speed=1e6) as replay:
        assert replay.session.answers.thinking == Thinking(False, "low", 20)
        replay.session.messages.send("hi")


def test_thinking_that_is_damaged_is_refused_and_older_recordings_have_none(recorded):
    path = recorded(FakeClient("An answer."), Thinking())
    text = path.read_text()
    (start,) = (line for line in text.splitlines() if '"start"' in line)
    facts = json.loads(start)
    facts[2]["thinking"] = {"enabled": 3}
    path.write_text(text.replace(start, json.dumps(facts)))
    with pytest.raises(InvalidRequest, match="damaged"), open_replay(path):
        pass
    del facts[2]["thinking"]
    path.write_text(text.replace(start, json.dumps(facts)))
    with open_replay(path) as replay:
        assert replay.session.answers.thinking == Thinking()


def test_what_a_replay_could_not_show_is_not_recorded():
    refuse_unrecorded(Settings(), several_models=False)
    with pytest.raises(ConfigurationError, match=r"no calls of tools: leave out --chat-tools\.$"):
        refuse_unrecorded(Settings(chat_tools=("read",)), several_models=False)
    with pytest.raises(ConfigurationError, match="a single --model"):
        refuse_unrecorded(Settings(), several_models=True)
