"""Pasted text: where it goes, and that none of it is a key."""

from textual import events
from textual.widgets import Input


async def paste(ui, text):
    ui.app.post_message(events.Paste(text))
    await ui.pilot.pause()


async def test_lines_stay_in_the_prompt(screen):
    async with screen() as ui:
        await paste(ui, "first\nsecond\n")
        assert ui.prompt.text == "first\nsecond\n"
        assert ui.session.path() == []


async def test_what_is_pasted_over_the_messages_goes_into_the_prompt(screen):
    async with screen() as ui:
        await ui.type("draft ")
        await ui.press("shift+tab")
        await ui.shown("NAVIGATE")
        await paste(ui, "quit? /delete\nD")
        await ui.shown("PROMPT")
        assert ui.prompt.text == "draft quit? /delete\nD"


async def test_a_field_of_one_line_takes_all_lines(screen):
    async with screen() as ui:
        field = ui.app.screen.query_one("#chat-filter", Input).focus()
        await paste(ui, "river\n  delta\n\nsea\n")
        assert field.value == "river delta sea"
        assert ui.prompt.text == ""


async def test_a_dialog_without_a_field_takes_nothing(screen):
    async with screen() as ui:
        await ui.press("f1")
        await ui.until(lambda: ui.app.dialog is not None, "the help")
        dialog = ui.app.dialog
        await paste(ui, "yes\nno")
        assert ui.app.dialog is dialog
        assert ui.prompt.text == ""
