"""The prompt: sending, queueing, breaking lines, the history, slash commands."""

import pytest

from engine.api.errors import QueueFull
from engine.api.request import FinishReason
from engine.conversations.tree import NodeStatus
from tests.tui.harness import converse


async def test_a_question_is_answered_word_by_word(screen):
    async with screen("The capital of France is Paris.") as ui:
        await ui.type("Capital of France?")
        await ui.press("enter")
        assert ui.prompt.text == ""
        assert ui.session.answers.generating
        ui.client.step(3)
        await ui.shown("The capital of", "answering", "ctrl+c stop")
        assert "Paris" not in ui.text
        await ui.answered()
        await ui.shown("The capital of France is Paris.", "ready")
        question, answer = ui.session.path()
        assert (question.text, answer.status) == ("Capital of France?", NodeStatus.DONE)


async def test_a_blank_prompt_is_not_sent(screen):
    async with screen() as ui:
        await ui.type("   ")
        await ui.press("enter")
        assert ui.client.requests == []


async def test_while_an_answer_runs_a_message_queues_and_esc_takes_it_back_unsent(screen):
    async with screen("one two three") as ui:
        await ui.ask("first")
        await ui.ask("second")
        await ui.ask("third")
        await ui.shown("⋯ second", "⋯ third", "esc takes the last one back")
        await ui.press("escape")
        assert ui.prompt.text == "third"
        assert ui.session.messages.queued == ("second",)
        await ui.press("escape")
        assert ui.prompt.text == "second\nthird"
        assert ui.session.answers.generating
        await ui.answered()
        assert len(ui.client.requests) == 1
        assert ui.session.path()[-1].text == "one two three"


async def test_a_queued_message_is_sent_when_the_answer_ends(screen):
    async with screen("one", "two") as ui:
        await ui.ask("first")
        await ui.ask("second")
        ui.client.finish()
        await ui.until(lambda: len(ui.client.requests) == 2, "the second request")
        await ui.answered()
        assert [node.text for node in ui.session.path()] == ["first", "one", "second", "two"]
        await ui.gone("⋯ second")


async def test_keys_that_break_the_line_do_not_send(screen):
    async with screen() as ui:
        for keys in (("ctrl+j",), ("shift+enter",), ("\\", "enter")):
            ui.prompt.text = ""
            await ui.type("a")
            await ui.press(*keys)
            await ui.type("b")
            assert ui.prompt.text == "a\nb", keys
        assert ui.client.requests == []


async def test_the_prompt_grows_with_its_lines_up_to_a_limit(screen):
    async with screen() as ui:
        assert ui.prompt.size.height == 1
        await ui.press("ctrl+j", "ctrl+j")
        assert ui.prompt.size.height == 3
        await ui.press(*["ctrl+j"] * 20)
        assert ui.prompt.size.height == 8


async def test_up_and_down_walk_the_history_and_keep_the_draft(screen):
    def earlier(session, client):
        converse(session, client, ("oldest", "a"), ("newest", "b"))

    async with screen(prepare=earlier) as ui:
        await ui.type("draft")
        await ui.press("up")
        assert ui.prompt.text == "newest"
        await ui.press("up", "up")
        assert ui.prompt.text == "oldest"
        await ui.press("down", "down")
        assert ui.prompt.text == "draft"


async def test_up_inside_a_text_of_several_lines_moves_the_cursor(screen):
    def earlier(session, client):
        converse(session, client, ("oldest", "a"))

    async with screen(prepare=earlier) as ui:
        ui.prompt.text = "one\ntwo"
        ui.prompt.move_cursor((1, 1))
        await ui.press("up")
        assert (ui.prompt.text, ui.prompt.cursor_location) == ("one\ntwo", (0, 1))


async def test_what_the_engine_refuses_goes_back_into_the_prompt(screen):
    async with screen() as ui:
        ui.client.refuse = QueueFull("The queue is full: 1024 requests wait.")
        await ui.ask("hello")
        await ui.shown("The queue is full")
        assert ui.prompt.text == "hello"


async def test_an_unknown_command_is_not_sent_and_names_its_neighbours(screen):
    async with screen() as ui:
        await ui.ask("/thme")
        assert "Did you mean /theme" in ui.toasts[-1]
        assert ui.prompt.text == "/thme"
        assert ui.client.requests == []


async def test_two_slashes_send_one(screen):
    async with screen("ok") as ui:
        await ui.ask("//usr/bin")
        assert ui.session.path()[0].text == "/usr/bin"


async def test_typing_a_slash_lists_commands_and_tab_completes(screen):
    async with screen() as ui:
        await ui.type("/")
        await ui.shown("/new", "start a new conversation", "more; f1 lists all")
        await ui.type("ren")
        await ui.shown("/rename TITLE")
        await ui.press("tab")
        assert ui.prompt.text == "/rename "
        await ui.type("Rivers")
        await ui.gone("rename this conversation")


async def test_a_command_says_what_it_did(screen):
    async with screen() as ui:
        for command, shown in (
            ("/sampling top_k=5", "Sampling of this conversation: top_k=5."),
            ("/system Be brief.", "System prompt: Be brief."),
            ("/system clear", "No system prompt."),
            ("/rename", "/rename needs an argument: TITLE."),
            ("/copy", "There is no answer to copy yet."),
            ("/regen", "The conversation is empty: send a message first."),
            ("/theme nele", "There is no theme nele. Did you mean neel"),
        ):
            await ui.ask(command)
            assert shown in ui.toasts[-1]


async def test_slash_new_with_text_asks_at_once(screen):
    def earlier(session, client):
        converse(session, client, ("old", "a"))

    async with screen("b", prepare=earlier) as ui:
        await ui.ask("/new young")
        assert [node.text for node in ui.session.path()] == ["young", ""]
        assert len(ui.session.conversations.find()) == 2


@pytest.mark.parametrize("end", ["withdraw", "new", "delete", "fail", "branch"])
async def test_no_row_of_a_queued_message_stays_behind(screen, end):
    async with screen("an answer", "another", "more") as ui:
        await ui.ask("zero")
        await ui.answered()
        await ui.ask("first")
        await ui.ask("second")
        await ui.shown("⋯ second", "esc takes the last one back")
        if end == "withdraw":
            await ui.press("escape")
        elif end == "new":
            await ui.press("ctrl+n")
        elif end == "delete":
            await ui.ask("/delete")
            await ui.press("y")
        elif end == "fail":
            ui.client.write("", finish=FinishReason.ERROR)
            ui.client.wake()
        else:
            ui.session.branches.rewind(ui.session.path()[1].id)
            await ui.app.show_chat()
        await ui.gone("⋯ second")
        await ui.gone("esc takes the last one back")
        assert not ui.app.screen.query_one("#queued").display
