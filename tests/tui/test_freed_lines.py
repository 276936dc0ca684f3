"""What a removed widget had drawn is freed."""

import gc
import weakref

from textual.app import App
from textual.widgets import Static

from app.tui.textual_workarounds.freed_lines import free_lines_of_removed_widgets


async def test_the_lines_of_removed_widgets_are_freed():
    free_lines_of_removed_widgets()
    app = App()
    async with app.run_test() as pilot:
        drawn = []
        for _ in range(5):
            shown = Static("a paragraph")
            await app.mount(shown)
            await pilot.pause()
            drawn.append(weakref.ref(shown._styles_cache))
            await shown.remove()
        del shown
        await pilot.pause()
        gc.collect()
        assert sum(one() is not None for one in drawn) <= 1  # Textual may hold the last one
