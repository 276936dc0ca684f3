"""Stopping an answer, and the ladder: one Esc undoes exactly one thing and never quits."""

import pytest

from engine.conversations.tree import NodeStatus
from tests.tui.harness import converse


async def test_ctrl_c_stops_the_answer_and_keeps_its_text(screen):
    async with screen("one two three four") as ui:
        await ui.ask("count")
        ui.client.step(2)
        await ui.shown("one two")
        await ui.press("ctrl+c")
        ui.client.step()
        await ui.shown("■ stopped", "ready")
        answer = ui.session.path()[-1]
        assert (answer.text, answer.status) == ("one two ", NodeStatus.STOPPED)


async def test_ctrl_c_twice_within_two_seconds_quits_and_slower_does_not(screen):
    async with screen() as ui:
        await ui.press("ctrl+c")
        assert ui.toasts == ["Press ctrl+c again to quit."]
        ui.clock.now += 2.1
        await ui.press("ctrl+c")
        assert ui.app.is_running
        ui.clock.now += 1.9
        await ui.press("ctrl+c")
        await ui.until(lambda: not ui.app.is_running, "the end")
        assert ui.app.return_code == 0


async def test_ctrl_c_copies_a_selection_instead_of_stopping(screen):
    async with screen("one two three") as ui:
        await ui.ask("count")
        ui.client.step()
        await ui.type("some words")
        ui.prompt.select_all()
        await ui.press("ctrl+c")
        assert ui.toasts[-1] == "10 characters copied with OSC 52."
        assert ui.app.clipboard == "some words"
        assert ui.session.answers.generating
        assert ui.client.cancelled == []


async def test_each_esc_undoes_one_thing_from_the_top_of_the_ladder(screen):
    async with screen("one two three", size=(160, 45)) as ui:
        await ui.ask("first")
        ui.client.step()
        await ui.ask("second")
        await ui.press("f3", "f3")
        assert ui.app.layout.maximised
        await ui.press("f1")
        assert len(ui.app.screen_stack) == 2

        await ui.press("escape")
        assert len(ui.app.screen_stack) == 1
        assert ui.app.layout.maximised
        await ui.press("escape")
        assert (ui.app.layout.pane, ui.app.layout.maximised) == ("chat", False)
        assert ui.session.messages.queued == ("second",)
        await ui.press("escape")
        assert (ui.session.messages.queued, ui.prompt.text) == ((), "second")
        assert ui.client.cancelled == []
        await ui.press("escape")
        assert len(ui.client.cancelled) == 1
        ui.client.step()
        await ui.until(lambda: not ui.session.answers.generating, "the stop")
        assert ui.prompt.has_focus
        await ui.press("escape")
        await ui.shown("NAVIGATE")
        assert ui.prompt.text == "second"


async def test_esc_drops_the_message_cursor_before_it_stops_the_answer(screen):
    async with screen("one two three") as ui:
        await ui.ask("first")
        await ui.press("shift+tab", "k")
        assert ui.transcript.selected is not None
        await ui.press("escape")
        assert ui.transcript.selected is None
        assert ui.client.cancelled == []
        await ui.press("escape")
        assert len(ui.client.cancelled) == 1


async def test_fifty_escs_while_idle_change_nothing(screen):
    def earlier(session, client):
        converse(session, client, ("question", "answer"))

    async with screen(prepare=earlier) as ui:
        await ui.type("a draft")
        await ui.until(lambda: ui.prompt.border_subtitle, "the tokens of the draft")
        await ui.press("escape")
        before = (ui.text, ui.session.path(), ui.session.tree_id)
        await ui.press(*["escape"] * 49)
        assert (ui.text, ui.session.path(), ui.session.tree_id) == before
        assert ui.prompt.text == "a draft"
        assert ui.app.is_running
        assert ui.toasts == []


async def test_regenerating_writes_a_sibling(screen):
    def earlier(session, client):
        converse(session, client, ("question", "first answer"))

    async with screen("second answer", prepare=earlier) as ui:
        first = ui.session.path()[-1]
        await ui.press("shift+tab", "r")
        await ui.answered()
        await ui.shown("second answer")
        assert [message.source for message in ui.transcript.messages] == [
            "question",
            "second answer",
        ]
        assert ui.session.path()[-1].id != first.id


async def test_letters_that_are_commands_in_navigate_mode_are_letters_in_the_prompt(screen):
    async with screen() as ui:
        await ui.type("i12jkgGrsy?")
        assert ui.prompt.text == "i12jkgGrsy?"
        assert len(ui.app.screen_stack) == 1
        assert ui.app.layout.pane == "chat"


async def test_y_copies_the_selected_message_as_it_was_written(screen):
    def earlier(session, client):
        converse(session, client, ("question", "some **bold** words"))

    async with screen(prepare=earlier) as ui:
        await ui.press("shift+tab", "y")
        assert ui.app.clipboard == "some **bold** words"
        await ui.press("g", "y")
        assert ui.app.clipboard == "question"


@pytest.mark.parametrize("leave", ["escape", "f3"])
async def test_leaving_a_pane_returns_to_the_mode_in_which_it_was_opened(screen, leave):
    async with screen("an answer", size=(100, 30)) as ui:
        await ui.ask("a question")
        await ui.answered()
        await ui.press("f3", leave)
        assert ui.prompt.has_focus
        await ui.press("shift+tab", "k", "v", leave)
        assert ui.app.focused.id == "messages"
        await ui.press("2", "f2")
        assert ui.prompt.has_focus
