"""What the engine goes through is on the screen in words; an idle screen does nothing at all."""

import pytest

from app.tui.view.mood import Mood
from app.tui.widgets.avatar import Avatar
from engine.api.snapshot import EngineState
from tests.fakes.fake_client import FakeClient


def mood(ui, index=0):
    return list(ui.app.query(Avatar))[index].shown[0]


async def test_loading_shows_its_progress_then_the_model(screen):
    client = FakeClient("an answer", state=EngineState.LOADING)
    async with screen(client=client) as ui:
        await ui.shown("loading the weights", "loading 0%")
        assert mood(ui) is Mood.LOADING
        client.load(0.5)
        await ui.shown("loading 50%", " 50%")
        ui.clock.now += 1
        client.load(1.0)
        await ui.shown("ready", "fake-135m · Q4_1", "135M parameters", "send what you typed")
        await ui.until(lambda: mood(ui) is Mood.IDLE, "calm")


async def test_an_answer_to_a_question_asked_while_loading_names_its_model(screen):
    client = FakeClient("an answer", state=EngineState.LOADING)
    async with screen(client=client) as ui:
        await ui.ask("early")
        await ui.shown("assistant")
        client.load(1.0)
        await ui.until(lambda: ui.session.answers.request_id is not None, "the request")
        await ui.answered()
        await ui.shown("≋ fake-135m", "an answer")
        await ui.gone("≋ assistant")


async def test_after_a_failed_load_what_was_sent_waits_for_another_model(screen):
    client = FakeClient("an answer", "another", state=EngineState.LOADING)
    async with screen(client=client) as ui:
        await ui.ask("hello")
        await ui.ask("and then")
        await ui.type("half a thou")
        client.fail_change("fake could not be loaded: The file \x1b[2J is damaged.")
        await ui.shown("fake could not be loaded: The file is damaged. /model chooses another.")
        await ui.until(lambda: ui.app.frame_clock.sleeping, "the clock's sleep")
        assert ui.prompt.text == "half a thou"
        client.begin_change("other")
        client.finish_change()
        await ui.until(lambda: len(client.requests) == 1, "the request")
        client.finish()
        await ui.until(lambda: len(client.requests) == 2, "the queued message")
        await ui.answered()
        await ui.shown("an answer", "and then", "another")


async def test_the_model_loads_after_the_first_frame(screen):
    client = FakeClient(state=EngineState.LOADING)
    order = []
    async with screen(client=client, on_first_frame=lambda: order.append("load")) as ui:
        await ui.until(lambda: order == ["load"], "the loading")
        assert "Pravāha" in ui.text


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda client: setattr(client, "waiting", 3), "3 waiting"),
        (lambda client: None, "42.0 tok/s"),
    ],
)
async def test_the_caption_says_the_mood_in_words(screen, prepare, words):
    async with screen(["word "] * 50, size=(160, 45)) as ui:
        await ui.ask("go")
        prepare(ui.client)
        ui.clock.now += 1
        ui.client.step(2)
        await ui.until(lambda: words in ui.text, words)
        caption = str(ui.app.query_one("#mood-words").lines[0][0].text)
        assert caption == words


async def test_when_idle_the_clock_sleeps_and_nothing_is_written(screen):
    async with screen("short") as ui:
        await ui.ask("question")
        await ui.answered()
        await ui.settled()
        ticks, written = ui.app.frame_clock.ticks, []
        ui.app._driver.write = written.append
        await ui.pilot.pause(0.5)
        assert ui.app.frame_clock.ticks == ticks
        assert written == []


async def test_the_avatar_blinks_a_few_times_then_is_still(screen, monkeypatch):
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "full")
    async with screen() as ui:
        seen = set()
        for _ in range(40):
            ui.clock.now += 0.25
            await ui.app.frame_clock.tick_once()
            seen.add(next(iter(ui.app.query(Avatar))).shown)
        assert len(seen) > 1
        ui.clock.now += 30
        await ui.settled()


async def test_without_animations_the_figure_never_moves(screen):
    async with screen() as ui:
        await ui.settled()
        shown = next(iter(ui.app.query(Avatar))).shown
        ui.clock.now += 2.25
        await ui.app.frame_clock.tick_once()
        assert next(iter(ui.app.query(Avatar))).shown == shown
