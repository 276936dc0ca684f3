"""A full context: the warning, the question, and what its choices do."""

from dataclasses import replace

import pytest

import tests.fakes.fake_client as fake
from engine.api.request import FinishReason
from engine.conversations.tree import NodeKind
from tests.tui.harness import converse


@pytest.fixture(autouse=True)
def _small_context(monkeypatch):
    monkeypatch.setattr(fake, "MODEL", replace(fake.MODEL, context_length=1500))


def long_chat(session, client):
    converse(session, client, ("one", "first " + "xy" * 300), ("two", "second " + "xy" * 200))


MESSAGE = "next " + "ab" * 220


async def test_at_four_fifths_it_warns_once(screen):
    def nearly_full(session, client):
        long_chat(session, client)
        converse(session, client, ("three", "xy" * 60))

    async with screen(prepare=nearly_full) as ui:
        await ui.until(lambda: ui.toasts, "the warning")
        assert "% of the context is used: /shorten leaves out earlier messages" in ui.toasts[0]
        await ui.press("f5", "f2")
        await ui.settled()
        assert len(ui.toasts) == 1


async def test_leaving_out_earlier_messages_sends_the_message(screen):
    async with screen("the answer", prepare=long_chat) as ui:
        await ui.ask(MESSAGE)
        await ui.shown("Context full", "Leave out earlier messages", "Summarise earlier messages")
        await ui.press("space", "d")
        await ui.until(lambda: ui.session.answers.generating)
        await ui.answered()
        await ui.shown("the answer")
        assert [node.kind for node in ui.session.path()][-3:] == [
            NodeKind.NOTE, NodeKind.USER, NodeKind.ASSISTANT,
        ]  # fmt: skip
        assert ui.prompt.text == ""


async def test_cancelling_returns_the_message_to_the_prompt(screen):
    async with screen(prepare=long_chat) as ui:
        before = ui.session.version
        await ui.ask(MESSAGE)
        await ui.shown("Context full")
        await ui.press("escape")
        await ui.gone("Context full")
        assert ui.prompt.text == MESSAGE
        assert ui.session.version == before


async def test_a_summary_is_written_first(screen):
    async with screen("the gist", "the answer", prepare=long_chat) as ui:
        await ui.ask(MESSAGE)
        await ui.shown("Context full")
        await ui.press("s")
        await ui.until(lambda: ui.session.messages.queued == (MESSAGE,))
        ui.client.finish()
        await ui.shown("the gist")
        await ui.until(lambda: ui.session.messages.queued == ())
        await ui.answered()
        await ui.shown("the gist", "the answer")


async def test_a_message_that_never_fits_is_refused_without_a_question(screen):
    async with screen(prepare=long_chat) as ui:
        nodes = len(ui.session.tree)
        await ui.ask("ab" * 900)
        await ui.until(lambda: ui.toasts)
        assert "The message alone has" in ui.toasts[-1]
        assert "Context full" not in ui.text
        assert ui.prompt.text == "ab" * 900
        assert len(ui.session.tree) == nodes


async def test_the_command_shortens_now(screen):
    def three(session, client):
        long_chat(session, client)
        converse(session, client, ("three", "ok"))

    async with screen(prepare=three) as ui:
        await ui.ask("/shorten drop")
        await ui.shown("no longer part of the context")
        await ui.ask("/shorten it")
        await ui.until(lambda: "/shorten takes drop or summarise." in ui.toasts)


async def test_it_is_offered_before_the_context_is_full(screen):
    async with screen("the answer", prepare=long_chat) as ui:
        await ui.ask("next " + "ab" * 150)
        await ui.shown("Context nearly full", "Send it as it is")
        await ui.press("a")
        await ui.until(lambda: ui.session.answers.generating)
        await ui.answered()
        await ui.shown("the answer")
        await ui.ask("ab" * 5)
        await ui.until(lambda: ui.session.answers.generating, "no second question")


async def test_the_question_says_what_the_model_will_still_know(screen):
    async with screen(prepare=long_chat) as ui:
        await ui.ask(MESSAGE)
        await ui.shown(
            "no longer reads 1 message;",
            "still knows your last message, from “two” on",
            "sums up 1 message, in at most 150 tokens",
            "still knows that, and your last message",
        )


async def test_the_command_says_what_the_model_will_still_know(screen):
    def three(session, client):
        long_chat(session, client)
        converse(session, client, ("three", "ok"))

    async with screen("the gist", prepare=three) as ui:
        await ui.ask("/shorten summarise")
        await ui.until(lambda: ui.toasts)
        assert "knows the summary, and your last 2 messages, with their answers" in ui.toasts[-1]


async def test_a_summary_that_was_cut_off_says_so(screen):
    def three(session, client):
        long_chat(session, client)
        converse(session, client, ("three", "ok"))

    async with screen(["the ", "gist of"], prepare=three) as ui:
        await ui.ask("/shorten summarise")
        ui.client.step()
        ui.client.write("", finish=FinishReason.LENGTH)
        ui.client.wake()
        await ui.shown("cut off: ")
        await ui.until(lambda: any("The summary: cut off" in toast for toast in ui.toasts))
