"""The screen while the terminal has not taken the last frame."""

from app.tui.output.output_pace import WINDOW_BYTES


def displayed(app):
    """The updates that reach the terminal from now on."""
    updates = []
    display = app._display

    def count(screen, renderable):
        if renderable is not None and not app.pace.congested:
            updates.append(renderable)
        display(screen, renderable)

    app._display = count
    return updates


async def test_frames_are_dropped_not_queued(screen):
    async with screen() as ui:
        pace = ui.app.pace
        pace.queued(2 * WINDOW_BYTES)
        assert pace.congested
        updates = displayed(ui.app)
        await ui.press(*"river")
        assert updates == []  # five keys, no frame
        pace.wrote(2 * WINDOW_BYTES)
        await ui.until(lambda: updates, "the frame after the pause")
        assert len(updates) <= 2  # the newest state only
        await ui.shown("river")
