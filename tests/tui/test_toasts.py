"""Notifications: a few at a time, repeated in the log."""

import logging

from textual.widgets._toast import Toast

from app.tui.toasts import MAX_TOASTS
from app.tui.widgets.kv_map import KvMap


async def test_a_further_one_replaces_the_oldest(screen):
    async with screen() as ui:
        for number in range(MAX_TOASTS + 2):
            ui.app.notify_safely(f"number {number}")
        await ui.until(lambda: len(ui.toasts) == MAX_TOASTS, "three toasts")
        assert ui.toasts == [f"number {number}" for number in (2, 3, 4)]


async def test_a_repeated_one_is_shown_once_and_last(screen):
    async with screen() as ui:
        for words in ("Nothing to undo.", "Undone: prune", "Nothing to undo.", "Nothing to undo."):
            ui.app.notify_safely(words)
        await ui.until(lambda: ui.toasts == ["Undone: prune", "Nothing to undo."], "two toasts")


async def test_they_are_repeated_in_the_log(screen, caplog):
    with caplog.at_level(logging.INFO, "app.tui.toasts"):
        async with screen() as ui:
            ui.app.notify_safely("The disk is full.", "error")
    assert ("app.tui.toasts", logging.ERROR, "The disk is full.") in caplog.record_tuples


async def test_one_that_expires_while_it_is_shown_is_removed_and_stops_nothing(screen):
    async with screen() as ui:
        ui.app.notify_safely("late")
        await ui.shown("late")
        (notification,) = ui.app._notifications
        notification.raised_at -= notification.timeout + 1
        late = Toast(notification)
        assert late._timeout > 0  # else its timer would never return
        await ui.app.screen.mount(late)
        await ui.until(lambda: not late.is_attached, "the end of the notification")


async def test_beside_the_figures_of_a_wide_screen_they_cover_nothing_that_is_read(screen):
    async with screen("An answer.", size=(160, 45)) as ui:
        await ui.ask("A question?")
        await ui.answered()
        ui.app.notify_safely(
            "Both paths share 9 blocks of the KV pool; 13 belong to one of them only."
        )
        await ui.until(lambda: ui.app.query(Toast), "the notification")
        (shown,) = ui.app.query(Toast)
        for covered in (ui.transcript, ui.prompt, ui.app.query_one(KvMap)):
            assert not shown.region.overlaps(covered.region)
        await ui.press("f5", "f5")
        await ui.until(lambda: not shown.region.overlaps(ui.prompt.region), "the move")
        assert ui.app.layout.maximised
