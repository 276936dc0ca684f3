"""Choosing a model on the screen: the list, the change, its failure, and the hint of a conversation."""

from dataclasses import replace

import pytest

from app.slash.models import build_near
from app.tui.view.model_lines import build_loaded, build_model, build_served_model
from app.tui.view.spans import plain
from app.tui.widgets.model_picker import ModelPicker
from engine.api.errors import ModelError
from engine.runtime.model_change import CHANGE_DRAIN_S
from tests.fakes.fake_client import MODEL, FakeClient
from tests.fakes.installed_models import HUGE, LOADED, OTHER
from tests.tui.harness import converse


@pytest.fixture
def client():
    client = FakeClient("an answer", "another")
    client.installed = [LOADED, HUGE, OTHER]
    return client


def test_a_row_has_what_a_choice_needs():
    text = plain(build_model(OTHER, 80))
    for fact in ("qwen3-0.6b", "640 MiB", "596M", "Q8_0", "qwen3", "33k tokens"):
        assert fact in text
    assert plain(build_model(LOADED, 80)).startswith("* fake-135m")
    assert "does not fit in memory" in plain(build_model(HUGE, 80))


def test_a_model_with_experts_has_the_weights_that_a_token_uses():
    active = {"parameters": 6_919_000_000, "active_parameters": 1_282_000_000}
    assert "1.3G active" in plain(build_model(replace(OTHER, **active), 80))
    assert "1.3G active" in plain(build_served_model(replace(OTHER, **active), 80)[:1])
    loaded = build_loaded(replace(MODEL, **active, weight_bytes=4 << 30, active_bytes=900 << 20))
    assert "6.9G parameters (1.3G active)" in loaded
    assert "in 4.0 GiB (900 MiB per token)" in loaded
    assert "active" not in build_loaded(MODEL)


def test_text_from_a_file_cannot_move_the_cursor():
    hostile = replace(OTHER, name="a\x1b[2Jb", architecture="\x1b]52;x", problem="no\x9b2J")
    assert "\x1b" not in plain(build_model(hostile, 80))
    assert "\x9b" not in plain(build_model(hostile, 80))
    assert "\x1b" not in build_loaded(replace(MODEL, name="a\x1b[2J"))


@pytest.mark.parametrize(
    ("name", "near"), [("qwen", "qwen3-0.6b"), ("FAKE-135", "fake-135m"), ("zzz", "/model lists")]
)
def test_a_typo_names_its_neighbours(name, near):
    assert near in build_near(name, [LOADED, OTHER, HUGE])


async def test_enter_loads_the_highlighted_model_and_the_header_names_it(screen, client):
    saved: list[str] = []
    async with screen(client=client, on_model=saved.append) as ui:
        await ui.ask("/model")
        await ui.shown("fake-135m", "qwen3-0.6b", "huge-70b does not fit", "Model")
        await ui.shown("llama, 135M parameters, Q4_1 in 98 MiB, KV f16")
        await ui.press("down", "enter")
        await ui.until(lambda: client.loads == [("qwen3-0.6b", CHANGE_DRAIN_S)], "the load")
        client.begin_change("qwen3-0.6b")
        await ui.shown("loading the weights of qwen3-0.6b", "loading 0%")
        ui.clock.now += 1
        client.finish_change()
        await ui.shown("ready", "qwen3-0.6b · Q4_1")
        assert saved == ["qwen3-0.6b"]


async def test_neither_a_model_without_room_nor_the_loaded_one_is_loaded(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("/model")
        await ui.shown("qwen3-0.6b")
        options = ui.app.screen.query_one("#model-list")
        await ui.press("down")
        assert options.highlighted_option.id == "qwen3-0.6b"
        await ui.press("down")
        assert options.highlighted_option.id == "fake-135m"
        await ui.press("enter")
        await ui.until(lambda: not isinstance(ui.app.screen, ModelPicker), "the end of the list")
        assert client.loads == []


async def test_enter_twice_and_esc_change_nothing_more(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("/model")
        await ui.shown("qwen3-0.6b")
        await ui.press("down", "enter", "enter", "escape")
        await ui.until(lambda: len(client.loads) == 1, "the load")
        await ui.ask("/model")
        await ui.press("escape")
        assert not isinstance(ui.app.screen, ModelPicker)
        assert len(client.loads) == 1


async def test_s_stops_running_answers(screen):
    client = FakeClient(["word "] * 50)
    client.installed = [LOADED, OTHER]
    async with screen(client=client) as ui:
        await ui.ask("go")
        client.step()
        ui.clock.now += 1
        await ui.ask("/model")
        await ui.shown("1 running", "s stops them now")
        await ui.press("down", "s")
        await ui.until(lambda: client.loads == [("qwen3-0.6b", 0.0)], "the load")


async def test_a_named_model_is_loaded_and_a_typo_helped(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("/model qwen3-0.6b")
        await ui.until(lambda: client.loads == [("qwen3-0.6b", CHANGE_DRAIN_S)], "the load")
        await ui.ask("/model qwem")
        await ui.until(lambda: any("Did you mean qwen3-0.6b?" in t for t in ui.toasts), "help")
        assert ui.prompt.text == "/model qwem"
        await ui.ask("/model QW now")
        await ui.until(lambda: client.loads[1:] == [("qwen3-0.6b", 0.0)], "the beginning of a name")
        client.refuse_load = ModelError("huge-70b does not fit in memory.")
        await ui.ask("/model huge-70b now")
        await ui.until(lambda: any("huge-70b does not fit" in t for t in ui.toasts), "the reason")


async def test_a_message_sent_while_the_model_changes_waits_for_it(screen, client):
    async with screen(client=client) as ui:
        client.begin_change("qwen3-0.6b")
        await ui.ask("early")
        await ui.shown("assistant")
        client.finish_change()
        await ui.until(lambda: ui.session.answers.request_id is not None, "the request")
        await ui.answered()
        await ui.shown("≋ qwen3-0.6b", "an answer")


async def test_a_change_that_fails_says_why_and_another_can_follow(screen, client):
    saved: list[str] = []
    async with screen(client=client, on_model=saved.append) as ui:
        client.begin_change("qwen3-0.6b")
        await ui.shown("loading 0%")
        client.fail_change("qwen3-0.6b could not be loaded: the file is damaged.")
        await ui.shown("no model", "qwen3-0.6b could not be loaded")
        ui.clock.now += 10
        await ui.ask("/model fake-135m")
        await ui.until(lambda: client.loads != [], "the load")
        client.begin_change("fake-135m")
        ui.clock.now += 1
        assert saved == []
        client.finish_change()
        await ui.shown("ready")


async def test_an_answer_is_given_again_by_a_model_that_is_loaded_for_it(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("question")
        await ui.answered()
        await ui.press("shift+tab", "o")
        await ui.shown("enter answers again", "qwen3-0.6b")
        await ui.press("down", "enter")
        await ui.until(lambda: client.loads == [("qwen3-0.6b", CHANGE_DRAIN_S)], "the load")
        await ui.until(lambda: ui.session.answers.generating, "the answer that waits")
        client.begin_change("qwen3-0.6b")
        client.finish_change()
        await ui.until(lambda: len(client.requests) == 2, "the request")
        await ui.answered()
        await ui.shown("≋ qwen3-0.6b", "another", "2/2")


async def test_an_answer_is_not_given_again_by_a_model_that_is_refused(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("question")
        await ui.answered()
        client.refuse_load = ModelError("qwen3-0.6b is damaged.")
        await ui.press("shift+tab", "o")
        await ui.shown("enter answers again", "qwen3-0.6b")
        await ui.press("down", "enter")
        await ui.until(lambda: any("is damaged" in one for one in ui.toasts), "the reason")
        assert len(client.requests) == 1


async def test_a_list_that_cannot_be_read_says_why(screen, client, monkeypatch):
    def damaged():
        raise ModelError("The record \x1b[2J is damaged.")

    monkeypatch.setattr(client, "models", damaged)
    async with screen(client=client) as ui:
        await ui.ask("/model")
        await ui.shown("The record is damaged.")


async def test_the_palette_opens_the_picker(screen, client):
    async with screen(client=client) as ui:
        await ui.press("ctrl+p")
        await ui.type("switch model")
        await ui.shown("Switch model")
        await ui.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker), "the picker")


async def test_a_conversation_of_another_installed_model_says_how_to_switch(screen, client):
    def earlier(session, client):
        client.model = replace(MODEL, name="qwen3-0.6b")
        converse(session, client, ("hello", "from qwen"))
        client.model = MODEL

    async with screen(client=client, prepare=earlier) as ui:
        hint = "Answered by qwen3-0.6b; /model qwen3-0.6b switches to it."
        await ui.until(lambda: hint in ui.toasts, "the hint")
        await ui.ask("again")
        await ui.answered()
        assert ui.toasts.count(hint) == 1


async def test_a_conversation_of_a_model_that_is_gone_gives_no_hint(screen, client):
    def earlier(session, client):
        client.model = replace(MODEL, name="deleted")
        converse(session, client, ("hello", "from afar"))
        client.model = MODEL

    async with screen(client=client, prepare=earlier) as ui:
        await ui.settled()
        await ui.app.workers.wait_for_complete()
        assert not any("deleted" in toast for toast in ui.toasts)


async def test_a_model_without_a_chat_template_is_told_once(screen, client):
    client.model = replace(MODEL, continues_text=True)
    async with screen(client=client) as ui:
        hint = "fake-135m has no chat template: it continues text."
        await ui.until(lambda: hint in ui.toasts, "the hint")
        await ui.ask("Once upon a time")
        await ui.answered()
        assert ui.toasts.count(hint) == 1
        await ui.ask("/model")
        await ui.shown("no chat template, it continues text")
