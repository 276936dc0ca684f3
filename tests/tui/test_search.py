"""Search over all branches, in the open one, and in earlier prompts."""

import threading
from concurrent.futures import Future

from textual.widgets import OptionList

from app.tui.view.hits import build_hit
from app.tui.view.spans import plain
from app.tui.widgets.past_prompts import SHOWN, find_prompts
from engine.conversations.tree import NodeKind, SearchHit
from tests.tui.harness import converse


def two_chats(session, client):
    converse(session, client, ("Tell me of rivers", "A heron\nstands in [/] the river."))
    client.answers.append("Another answer.")
    session.branches.regenerate()
    client.finish()
    session.pump()
    session.conversations.open_new()
    converse(session, client, ("Tell me of clouds", "All about clouds."), ("and rain?", "Wet."))


async def test_a_hit_on_another_branch_of_another_conversation_is_opened(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.press("ctrl+f")
        await ui.shown("Search all conversations", "type what to look for")
        await ui.type("stands IN")
        await ui.shown("Tell me of rivers", "Pravāha: stands in [/] the river.")
        await ui.press("enter")
        await ui.gone("Search all")
        await ui.shown("A heron")
        assert [node.text for node in ui.session.path()][1].startswith("A heron")
        assert ui.transcript.selected.id == ui.session.path()[1].id
        assert not ui.prompt.has_focus


async def test_escape_changes_nothing(screen):
    async with screen(prepare=two_chats) as ui:
        before = ui.session.version, ui.session.head
        await ui.type("draft")
        await ui.press("ctrl+f")
        await ui.type("heron")
        await ui.shown("A heron")
        await ui.press("escape")
        await ui.gone("Search all")
        assert (ui.session.version, ui.session.head) == before
        assert ui.prompt.text == "draft"
        assert ui.prompt.has_focus


async def test_what_is_not_there_is_said_and_enter_does_nothing(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.press("ctrl+f")
        await ui.type("zebra")
        await ui.shown("no message contains that")
        await ui.press("enter", "down", "up")
        await ui.shown("Search all conversations")


async def test_up_and_down_move_over_the_hits_while_typing(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.press("ctrl+f")
        await ui.type("tell me")
        await ui.shown("You: Tell me of clouds", "You: Tell me of rivers")
        await ui.until(lambda: all(one.is_finished for one in ui.app.workers), "the last search")
        await ui.press("down", "enter")
        await ui.gone("Search all")
        assert ui.session.title == "Tell me of rivers"


async def test_an_overtaken_search_is_not_shown(screen):
    async with screen(prepare=two_chats) as ui:
        asked: list[tuple[str, Future]] = []

        def start(query):
            if asked:
                asked[-1][1].cancel()
            asked.append((query, Future()))
            return asked[-1][1]

        ui.session.conversations.start_find_messages = start
        await ui.press("ctrl+f")
        await ui.type("cl")
        await ui.until(lambda: asked and asked[-1][0] == "cl")
        hit = SearchHit("t", "the title", "n", NodeKind.USER, "clouds", 0.0)
        threading.Thread(target=asked[-1][1].set_result, args=([hit],)).start()
        await ui.shown("the title")
        assert all(future.cancelled() for _, future in asked[:-1])


async def test_a_result_that_comes_when_the_dialog_is_closed_is_not_shown(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.press("ctrl+f")
        dialog = ui.app.screen
        await ui.press("escape")
        await dialog.remove()
        await dialog._search("")
        await dialog._search("heron")


async def test_slash_search_takes_its_words(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.ask("/search heron")
        await ui.shown("Search all conversations", "A heron")


async def test_finding_in_the_open_branch(screen):
    async with screen(prepare=two_chats) as ui:
        path = [node.id for node in ui.session.path()]
        await ui.press("escape", "slash")
        await ui.shown("Find in this branch")
        await ui.type("CLOUDS")
        await ui.press("enter")
        await ui.until(lambda: ui.transcript.selected is not None)
        assert ui.transcript.selected.id == path[0]
        await ui.press("n")
        assert ui.transcript.selected.id == path[1]
        await ui.press("n")
        assert ui.transcript.selected.id == path[0]
        await ui.press("N")
        assert ui.transcript.selected.id == path[1]
        await ui.press("slash")
        await ui.type("zebra")
        await ui.press("enter")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["No message of this branch contains zebra."]


def test_a_hit_has_title_age_author_and_line():
    hit = SearchHit(
        "t", "A \x1b[2Jtitle", "n", NodeKind.ASSISTANT, "one\nthe heron \x07flew", 100.0
    )
    lines = build_hit(hit, "heron", 160.0, 60)
    assert plain(lines) == "A title  1m\n  Pravāha: the heron flew"
    assert [span.text for span in lines[1] if "underline" in span.style] == ["heron"]


def test_earlier_prompts_are_found_newest_first_and_once_whatever_their_case():
    history = ["Rivers?", "clouds", "two\nRIVERS", "rivers [/]", "clouds"]
    assert find_prompts(history, "rivers") == ["rivers [/]", "two\nRIVERS", "Rivers?"]
    assert find_prompts(history, "")[:2] == ["clouds", "rivers [/]"]
    assert find_prompts(history, "zebra") == []
    assert find_prompts([str(n) for n in range(SHOWN + 9)], "")[-1] == "9"


async def test_an_earlier_prompt_takes_the_place_of_the_draft(screen):
    async with screen(prepare=two_chats) as ui:
        await ui.type("draft")
        await ui.press("ctrl+r")
        await ui.shown("Earlier prompts", "and rain?", "Tell me of clouds", "Tell me of rivers")
        await ui.type("OF CL")
        await ui.until(lambda: ui.app.screen.query_one(OptionList).option_count == 1, "one prompt")
        await ui.press("escape")
        await ui.gone("Earlier prompts")
        assert ui.prompt.text == "draft"
        await ui.press("ctrl+r")
        await ui.type("zebra")
        await ui.shown("no prompt contains that")
        await ui.press("enter", *["backspace"] * 5, "down", "enter")
        await ui.gone("Earlier prompts")
        assert ui.prompt.text == "Tell me of clouds"
        assert ui.prompt.has_focus


async def test_without_earlier_prompts_this_is_said(screen):
    async with screen() as ui:
        await ui.press("ctrl+r")
        assert ui.toasts == ["There are no earlier prompts."]
