"""Exceptions in any part of the screen: the app goes on, the log has the traceback, one toast says so."""

import asyncio
import logging

import pytest
from textual.widget import Widget

from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.status_bar import StatusBar
from tests.fakes.fake_client import FakeClient
from tests.tui.harness import Clock, make_app, make_session


class Broken(Exception):
    pass


def fail(*_, **__):
    raise Broken("a defect")


async def assert_survived(ui, caplog):
    """The failure was reported once, and a message can be sent and answered."""
    await ui.until(lambda: ui.app.failures.first, "the failure")
    await ui.until(lambda: ui.toasts, "a toast")
    assert ui.toasts == ["This failed: Broken: a defect; the log has the details."]
    assert "a defect" in caplog.text
    assert "Traceback" in caplog.text
    ui.app.failures.first.clear()
    await ui.ask("still there?")
    await ui.answered()
    assert ui.session.path()[-1].text == "yes"


async def test_in_the_handler_of_a_key(screen, monkeypatch, caplog):
    async with screen("yes") as ui:
        with monkeypatch.context() as patched:
            patched.setattr(Prompt, "_on_key", fail)
            await ui.press("a", "b", "c")
        await assert_survived(ui, caplog)


async def test_in_an_action(screen, monkeypatch, caplog):
    async with screen("yes") as ui:
        monkeypatch.setattr(ui.app, "action_help", fail)
        await ui.press("f1", "f1")
        await assert_survived(ui, caplog)


async def test_in_a_worker(screen, caplog):
    async def work():
        fail()

    async with screen("yes") as ui:
        ui.app.run_worker(work())
        await assert_survived(ui, caplog)


async def test_in_a_timer_a_callback_and_a_callback_after_a_refresh(screen, caplog):
    async with screen("yes") as ui:
        ui.app.set_timer(0.001, fail)
        ui.app.call_later(fail)
        ui.app.call_after_refresh(fail)
        ui.prompt.call_next(fail)
        await assert_survived(ui, caplog)


async def test_in_a_watcher(screen, monkeypatch, caplog):
    async with screen("yes") as ui:
        with monkeypatch.context() as patched:
            patched.setattr(ui.app, "draw_all", fail)
            await ui.press("f5")
        await assert_survived(ui, caplog)


async def test_in_a_tick_of_the_clock(screen, monkeypatch, caplog):
    async with screen("yes") as ui:
        with monkeypatch.context() as patched:
            patched.setattr(ui.session, "pump", fail)
            ui.app.frame_clock.wake()
            await ui.until(lambda: ui.app.failures.first, "the failure")
        await assert_survived(ui, caplog)


async def test_a_tick_whose_widgets_are_removed_when_the_app_ends_is_no_failure(
    screen, monkeypatch
):
    async with screen() as ui:
        begun = asyncio.Event()

        async def tick(now):
            begun.set()
            while ui.app.is_running:  # noqa: ASYNC110 - the app has no event for its end
                await asyncio.sleep(0.005)
            fail()

        monkeypatch.setattr(ui.app.drawing.presenter, "tick", tick)
        ui.app.frame_clock.wake()
        await begun.wait()
    assert ui.app.return_code in (0, None)


async def test_in_the_drawing_of_a_widget_the_others_are_drawn(screen, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    async with screen("yes") as ui:
        with monkeypatch.context() as patched:
            patched.setattr(StatusBar, "render", fail)
            for key in "abcdefghij":
                ui.app.screen.refresh()
                for widget in ui.app.screen.query(StatusBar):
                    widget.refresh()
                await ui.press(key)
            assert "abcdefghij" in ui.text
        await assert_survived(ui, caplog)
        assert caplog.text.count("Traceback") < 10


async def test_in_composing_a_new_widget(screen, caplog):
    class Half(Widget):
        compose = fail

    async with screen("yes") as ui:
        await ui.app.screen.mount(Half())
        await assert_survived(ui, caplog)


async def test_before_the_first_frame_an_exception_ends_the_program(tmp_path, monkeypatch):
    monkeypatch.setattr(KvMap, "on_mount", fail, raising=False)
    client = FakeClient()
    session, store = make_session(client, tmp_path, Clock())
    app = make_app(client, session, Clock())
    with pytest.raises(Broken):
        async with app.run_test():
            pass
    assert app.return_code == 1
    session.close()
    store.close()
