"""Dialogs: each opens once and closes once, however fast keys and clicks come."""

from textual import events
from textual.command import CommandList
from textual.selection import SELECT_ALL
from textual.widgets import OptionList

from tests.tui.harness import converse


def post_keys(ui, *keys):
    """Keys that arrive in one read of the terminal."""
    for key in keys:
        ui.app.post_message(events.Key(key, key if len(key) == 1 else None))


def earlier(session, client):
    converse(session, client, ("question", "answer"))


async def test_two_choices_at_once_in_the_theme_list_close_it_only(screen):
    async with screen() as ui:
        post_keys(ui, "f9", "enter", "enter")
        await ui.until(lambda: len(ui.app.screen_stack) == 1, "the end of the dialog")
        assert ui.app.is_running
        await ui.press("f9")
        options = ui.app.screen.query_one(OptionList)
        options.action_select()
        options.action_select()
        await ui.until(lambda: len(ui.app.screen_stack) == 1, "the end of the dialog")
        await ui.press("f9")
        await ui.pilot.click("#theme-list", offset=(2, 1), times=2)
        await ui.until(lambda: len(ui.app.screen_stack) == 1, "the end of the dialog")


async def test_a_dialog_below_another_one_is_not_closed_in_its_place(screen):
    async with screen() as ui:
        await ui.press("f9")
        below = ui.app.screen
        await ui.press("ctrl+p")
        below.dismiss(None)
        await ui.pilot.pause()
        assert len(ui.app.screen_stack) == 3
        await ui.press("escape", "escape")
        assert len(ui.app.screen_stack) == 1


async def test_a_question_is_answered_once(screen):
    async with screen(prepare=earlier) as ui:
        ui.app.actions.conversations.ask_delete(ui.session.tree_id)
        post_keys(ui, "y", "y", "n")
        await ui.until(lambda: ui.session.conversations.find() == [], "the archive")
        assert len(ui.app.screen_stack) == 1


async def test_help_closes_once(screen):
    async with screen() as ui:
        post_keys(ui, "f1", "escape", "escape", "q")
        await ui.until(lambda: len(ui.app.screen_stack) == 1, "the end of the help")


async def test_each_dialog_opens_once(screen):
    async with screen() as ui:
        post_keys(ui, "ctrl+p", "f9", "ctrl+p", "f9")
        await ui.until(lambda: len(ui.app.screen_stack) == 3, "two dialogs")
        await ui.pilot.pause()
        assert len(ui.app.screen_stack) == 3


async def test_paging_through_the_hidden_results_of_the_palette_does_nothing(screen):
    async with screen() as ui:
        await ui.press("ctrl+p")
        results = ui.app.screen.query_one(CommandList)
        await ui.until(lambda: results.option_count, "the commands")
        results.display = False
        await ui.pilot.pause()
        results._clear_caches()  # as after a resize
        await ui.press("pageup", "pagedown")
        assert len(ui.app.screen_stack) == 2


async def test_paging_through_a_theme_list_without_room_does_nothing(screen):
    async with screen() as ui:
        await ui.press("f9")
        options = ui.app.screen.query_one(OptionList)
        options.display = False
        await ui.pilot.pause()
        options._clear_caches()
        options.action_page_up()
        options.action_page_down()


async def test_a_search_of_the_palette_that_begins_when_it_is_closed_does_nothing(screen):
    async with screen() as ui:
        await ui.press("ctrl+p")
        palette = ui.app.screen
        await ui.press("escape")
        await palette.remove()
        searched = palette._gather_commands("theme")
        await searched.wait()
        assert ui.app.failures.first == []


async def test_a_selection_that_changes_on_a_closed_dialog_leaves_no_coroutine(screen):
    async with screen() as ui:
        await ui.press("f1")
        dialog = ui.app.screen
        await ui.press("escape")
        await ui.until(lambda: not dialog.is_attached, "the end of the dialog")
        dialog.selections = {dialog: SELECT_ALL}
        assert dialog._next_callbacks == []  # would never be called
