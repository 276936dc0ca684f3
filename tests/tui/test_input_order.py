"""Input that arrives at once takes effect in order, each event with the focus that the last one left."""

from textual import events
from textual.widget import Widget

from tests.tui.harness import converse
from tests.tui.test_dialogs import post_keys


def earlier(session, client):
    converse(session, client, ("question", "answer"))


async def test_letters_after_the_key_that_opens_the_prompt_are_typed(screen):
    async with screen(prepare=earlier) as ui:
        await ui.press("shift+tab")
        post_keys(ui, *"iremember")
        await ui.until(lambda: ui.prompt.text == "remember", "the text")
        assert (ui.toasts, ui.session.answers.generating) == ([], False)


async def test_letters_after_the_key_that_leaves_the_prompt_are_commands(screen):
    async with screen("again", prepare=earlier) as ui:
        post_keys(ui, "a", "shift+tab", "r")
        await ui.until(lambda: ui.session.answers.generating, "the new answer")
        assert ui.prompt.text == "a"


async def test_a_paste_after_the_key_that_opens_the_prompt_is_inserted(screen):
    async with screen(prepare=earlier) as ui:
        await ui.press("shift+tab")
        post_keys(ui, "i")
        ui.app.post_message(events.Paste("some text"))
        post_keys(ui, "x")
        await ui.until(lambda: ui.prompt.text == "some textx", "the text")


async def test_keys_after_one_that_opens_a_pane_go_to_the_pane(screen):
    async with screen(size=(160, 45)) as ui:
        post_keys(ui, "f3", "x", "f2", "y")
        await ui.until(lambda: ui.prompt.text == "y", "the text")


async def test_keys_after_one_that_opens_a_dialog_go_to_the_dialog(screen):
    async with screen() as ui:
        before = ui.app.theme
        post_keys(ui, "f9", "down", "enter", "z")
        await ui.until(lambda: ui.prompt.text == "z", "the text")
        assert ui.app.theme != before


async def test_a_thousand_letters_at_once_are_typed_in_order(screen):
    text = "abcdefghij" * 100
    async with screen() as ui:
        post_keys(ui, *text)
        await ui.until(lambda: len(ui.prompt.text) == len(text), "the text")
        assert ui.prompt.text == text


async def test_a_key_for_a_widget_that_is_removed_does_not_block_the_next(screen):
    class Target(Widget, can_focus=True):
        async def on_key(self):
            self._closing = self._closed = True  # the key's follower is never handled

    async with screen() as ui:
        target = Target()
        await ui.app.screen.mount(target)
        target.focus()
        await ui.until(lambda: target.has_focus, "the focus")
        post_keys(ui, "a")
        await ui.pilot.pause()
        ui.prompt.focus()
        post_keys(ui, "b")
        await ui.until(lambda: ui.prompt.text == "b", "the text")


async def test_a_key_that_arrives_when_the_app_has_ended_is_dropped(screen):
    async with screen() as ui:
        pass
    await ui.app.on_event(events.Key("a", "a"))
    assert not ui.app.input_pending
