"""Going back in time: every earlier frame is shown as it was, within bounded memory."""

from dataclasses import fields

import numpy as np
import pytest

from app.tui import engine_history
from app.tui.engine_history import SECONDS, EngineHistory
from engine.api.request import Request
from tests.fakes.fake_client import FakeClient


def run(frames, *, first=0.0):
    """Frames of an engine with three requests, and the history that saw them."""
    client = FakeClient("a b c d e f", "g h i", "j k l m n o p q", blocks=64)
    history = EngineHistory(client)
    seen = []
    epoch = -1
    for number in range(frames):
        now = first + number
        if number in (0, 3, 5):
            client.submit(Request((1,) * 20 * (number + 1)))
        client.step()
        snapshot = client.snapshot()
        history.add(now, snapshot)
        blocks = history.blocks(epoch)
        epoch = epoch if blocks is None else blocks.epoch
        seen.append((now, snapshot, client.blocks(-1), history.request_table()))
    return history, seen


def assert_same(one, other):
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_every_earlier_frame_is_shown_as_it_was():
    history, seen = run(12)
    for now, snapshot, blocks, table in seen:
        past = history.past(now)
        assert past.snapshot() == snapshot
        assert_same(past.blocks(-1), blocks)
        assert past.request_table() == table
        assert past.blocks(blocks.epoch) is None


def test_what_is_older_than_the_limit_is_forgotten():
    history, seen = run(10)
    last = seen[-1][0] + SECONDS
    history.add(last, seen[-1][1])
    assert history.oldest == pytest.approx(last - SECONDS)
    assert history.past(0.0).snapshot() == seen[-1][1]


def test_changes_of_blocks_are_bounded(monkeypatch):
    monkeypatch.setattr(engine_history, "MAX_CHANGED", 200)
    history, seen = run(12)
    assert history._changed <= 200 + 64 * 12
    assert_same(history.past(seen[-1][0]).blocks(-1), seen[-1][2])


async def test_the_keys_show_an_earlier_instant_and_the_present_again(screen):
    async with screen("one two three four five six") as ui:
        await ui.ask("hello")
        for _ in range(4):
            ui.clock.now += 1.0
            ui.client.step()
            ui.app.frame_clock.wake()
            await ui.pilot.pause()
        await ui.press("shift+tab", "greater_than_sign")
        assert ui.toasts[-1] == "The engine is shown as it is now; < goes back."
        await ui.press("less_than_sign")
        # In the header and, also where that has no room, in the status bar.
        await ui.shown("as of 23:13:19, esc returns", "NAVIGATE   as of 23:13:19", "0 now")
        await ui.pilot.resize_terminal(60, 20)
        await ui.gone("esc returns")
        await ui.shown("NAVIGATE   as of 23:13:19", "0 now")
        await ui.pilot.resize_terminal(120, 36)
        await ui.press("0")
        await ui.gone("as of")
        await ui.press("left_parenthesis", "greater_than_sign")
        await ui.shown("as of")
        ui.app.clear_notifications()
        await ui.press("left_parenthesis", "left_parenthesis")
        assert ui.toasts[-1] == "Nothing earlier of the engine is kept."
        await ui.press("right_parenthesis")
        await ui.gone("as of")


async def test_esc_in_the_prompt_returns_to_the_present(screen):
    async with screen("one two three") as ui:
        await ui.ask("hello")
        for _ in range(4):
            ui.clock.now += 1.0
            ui.client.step()
            ui.app.frame_clock.wake()
            await ui.pilot.pause()
        await ui.press("shift+tab", "less_than_sign", "i")
        await ui.shown("PROMPT   as of 23:13:19", "esc now")
        await ui.press("escape")
        await ui.gone("as of")
        assert "PROMPT" in ui.text


async def test_the_scheduler_pane_shows_requests_and_changes_the_policy(screen):
    async with screen("one two three four five six") as ui:
        await ui.ask("hello")
        ui.client.step(2)
        await ui.press("f10")
        await ui.shown("Scheduler", "Step plan", "Last steps", "policy")
        before = ui.client.scheduling.policy
        await ui.press("o")
        assert ui.client.scheduling.policy != before
        former = ui.client.scheduling.batch_former
        await ui.press("O")
        assert ui.client.scheduling.batch_former != former
