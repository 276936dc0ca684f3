"""The reasoning of answers on the screen: one row, unfolded by a key, ended, switched off."""

import pytest

from app.tui.textual_workarounds.answer_markdown import AnswerMarkdown
from engine.text.reasoning_markers import ReasoningMarkers
from tests.fakes.fake_client import FakeClient

ANSWER = ["<think>", "first this, ", "then that", "</think>", "\n\n", "Because."]


@pytest.fixture
def client():
    client = FakeClient(ANSWER)
    client.markers = ReasoningMarkers("<think>", "</think>")
    return client


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_it_is_folded_and_a_key_shows_it(screen, client, size):
    async with screen(client=client, size=size) as ui:
        await ui.ask("why")
        await ui.answered()
        await ui.shown("thought for", "tokens", "T shows it", "Because.")
        assert "first this" not in ui.text
        await ui.press("shift+tab", "T")
        await ui.shown("first this, then that", "T hides it", "Because.")
        await ui.press("T")
        await ui.gone("first this")


async def test_a_model_that_thinks_says_so_and_can_be_made_to_answer(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("why")
        client.step(2)
        await ui.shown("thinking", "S has it answer now")
        await ui.press("shift+tab", "S")
        await ui.until(lambda: len(client.reasoning_ended) == 1, "the end of the thinking")
        await ui.press("T")
        await ui.shown("first this,")
        await ui.answered()
        await ui.shown("thought for", "Because.")


async def test_copying_leaves_the_reasoning_out(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("why")
        await ui.answered()
        assert ui.last.source == "Because."


async def test_the_command_says_how_much_is_asked_for(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("/think high 200")
        await ui.until(
            lambda: any("on, effort high, at most 200 tokens" in one for one in ui.toasts), "toast"
        )
        await ui.ask("/think end")
        await ui.until(lambda: any("is thinking" in one for one in ui.toasts), "the refusal")
        await ui.ask("/think perhaps")
        await ui.until(lambda: any("should be on, off" in one for one in ui.toasts), "the reason")
        await ui.ask("why")
        assert client.requests[-1].sampling.reasoning.max_tokens == 200


async def test_an_answer_without_reasoning_has_no_row(screen):
    async with screen("plain") as ui:
        await ui.ask("why")
        await ui.answered()
        assert not ui.last.query(".message-thought")
        await ui.press("shift+tab", "T")
        await ui.until(lambda: any("no reasoning to show" in one for one in ui.toasts), "why")


async def test_it_stays_above_an_answer_that_markdown_cannot_show(screen, client, monkeypatch):
    async def fail(self, text):
        raise RuntimeError

    monkeypatch.setattr(AnswerMarkdown, "grow", fail)
    async with screen(client=client) as ui:
        await ui.ask("why")
        client.step(2)
        await ui.shown("thinking")
        await ui.answered()
        await ui.shown("thought for", "Because.")
        assert ui.text.index("thought for") < ui.text.index("Because.")
