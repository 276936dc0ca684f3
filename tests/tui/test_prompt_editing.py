"""Undo in the prompt, suspending, and repainting."""

from textual import events

from tests.tui.harness import converse

PASTED = "\n".join(f"line {number}" for number in range(30))


async def test_undoing_and_redoing_a_paste_that_needed_a_scroll_bar(screen):
    async with screen() as ui:
        ui.app.post_message(events.Paste(PASTED))
        await ui.until(lambda: ui.prompt.text == PASTED, "the paste")
        await ui.press("ctrl+z")
        assert ui.prompt.text == ""
        await ui.press("ctrl+y")
        assert ui.prompt.text == PASTED
        assert ui.prompt.cursor_location == (29, 7)
        await ui.press("ctrl+z")
        assert ui.prompt.text == ""


async def test_ctrl_z_undoes_in_the_prompt_and_suspends_when_there_is_nothing_to_undo(
    screen, monkeypatch
):
    suspended = []
    async with screen() as ui:
        monkeypatch.setattr(ui.app, "action_suspend_process", lambda: suspended.append(1))
        await ui.type("a")
        await ui.press("ctrl+z")
        assert (ui.prompt.text, suspended) == ("", [])
        await ui.press("ctrl+z")
        assert suspended == [1]
        await ui.press("shift+tab", "ctrl+z")
        assert suspended == [1, 1]
        await ui.press("ctrl+t", "ctrl+z")
        assert suspended == [1, 1, 1]


async def test_a_sent_message_is_not_undone(screen, monkeypatch):
    suspended = []
    async with screen("answer") as ui:
        monkeypatch.setattr(ui.app, "action_suspend_process", lambda: suspended.append(1))
        await ui.type("a question")
        await ui.press("enter")
        await ui.press("ctrl+z")
        assert (ui.prompt.text, suspended) == ("", [1])


async def test_ctrl_l_draws_every_row_again(screen):
    drawn = []
    async with screen() as ui:
        refresh = ui.app.screen.refresh
        ui.app.screen.refresh = lambda *args, **options: drawn.append(args) or refresh(*args)
        await ui.press("ctrl+l")
        assert () in drawn


async def test_r_regenerates_from_the_conversation_list(screen):
    def earlier(session, client):
        converse(session, client, ("question", "first answer"))

    async with screen("second answer", prepare=earlier) as ui:
        await ui.press("ctrl+t", "r")
        await ui.answered()
        await ui.shown("second answer")


async def test_a_prompt_without_room_for_a_letter_is_drawn(screen):
    async with screen() as ui:
        ui.prompt.styles.width = 4
        ui.prompt.styles.padding = 1
        await ui.pilot.pause()
        assert ui.prompt.content_size.width == 0
        assert ui.app.failures.first == []
