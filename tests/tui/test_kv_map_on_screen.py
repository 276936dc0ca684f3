"""The KV map: cursor, zoom, hover and owner tell each block's request and tokens."""

from dataclasses import replace

import numpy as np
import pytest

from app.tui.presenter import FIGURES_S
from app.tui.view.kv_cells import FLASH
from app.tui.view.kv_colors import ColorMode
from app.tui.view.kv_events import short_id
from app.tui.view.kv_flash import BLINK_S
from app.tui.widgets.kv_map import KvMap
from engine.api.events import RequestForked
from tests.fakes.fake_client import BLOCK_SIZE
from tests.tui.harness import converse


@pytest.fixture
def open_map(screen):
    def running(session, client):
        converse(session, client, ("first", "done " * 10))
        client.answers.append(["word "] * 40)
        session.messages.send("second " * 20)
        client.step(10)

    return lambda **options: screen(prepare=running, size=(160, 45), **options)


def kv_map(ui) -> KvMap:
    return ui.app.query_one(KvMap)


def own_block(ui):
    blocks = ui.client.blocks(-1)
    return int((blocks.owner == 0).nonzero()[0][0])


async def test_keys_move_the_cursor_over_the_blocks_and_zoom(open_map):
    async with open_map() as ui:
        await ui.press("f3")
        await ui.shown("block 0")
        columns = kv_map(ui).scrollable_content_region.width
        await ui.press("l", "l", "j")
        assert kv_map(ui).cursor == columns + 2
        await ui.press("h", "k", "k")
        assert kv_map(ui).cursor == 1
        await ui.shown("block 1")
        await ui.press("h", "minus", "minus")
        assert kv_map(ui).zoom == 4
        await ui.shown("(cell of 4)")
        await ui.press("l")
        assert kv_map(ui).cursor == 4
        await ui.press("plus", "plus", "plus")
        assert kv_map(ui).zoom == 1


async def test_a_held_block_shows_its_request_tokens_and_text_and_enter_lights_its_owner(open_map):
    async with open_map() as ui:
        block = own_block(ui)
        await ui.press("f3", *["l"] * block)
        request = ui.client.requests[-1].request_id
        await ui.shown(
            f"block {block}",
            "active",
            "refs 1",
            f"fill {BLOCK_SIZE}/{BLOCK_SIZE}",
            f"tokens 0–{BLOCK_SIZE - 1}",
            request[:16],
            f"text of block {block}",
        )
        await ui.press("enter")
        assert kv_map(ui).lit == request
        await ui.press("enter")
        assert kv_map(ui).lit is None


async def test_hovering_shows_the_same_as_the_cursor(open_map):
    async with open_map() as ui:
        block = own_block(ui)
        columns = kv_map(ui).scrollable_content_region.width
        await ui.pilot.hover(KvMap, offset=(block % columns, block // columns // 2))
        await ui.shown(f"block {block - block // columns % 2 * columns}")
        assert ui.prompt.has_focus


async def test_the_legend_counts_what_the_engine_counts(open_map):
    async with open_map() as ui:
        counts = ui.client.snapshot().blocks
        await ui.shown(
            f"this chat {counts.active}", f"cached {counts.cached}", f"free {counts.free}"
        )
        ui.client.finish()
        await ui.shown("active 0")
        await ui.gone("this chat")


async def test_a_change_repaints_its_rows_only(open_map, monkeypatch):
    async with open_map() as ui:
        painted = []
        render = KvMap.render_line

        def counted(self, y):
            painted.append(y)
            return render(self, y)

        monkeypatch.setattr(KvMap, "render_line", counted)
        ui.client.step(5)
        ui.clock.now += FIGURES_S
        await ui.until(lambda: painted, "the repaint")
        assert len(painted) < kv_map(ui).size.height / 2


async def test_t_goes_through_the_colour_modes(open_map):
    async with open_map() as ui:
        await ui.press("f3", "t")
        assert kv_map(ui).mode is ColorMode.REQUEST
        await ui.shown("request  ", short_id(ui.client.requests[-1].request_id))
        await ui.press("t", "t")
        await ui.shown("fill  ", "full")
        await ui.press("t", "t")
        assert kv_map(ui).mode is ColorMode.STATE
        await ui.shown("active")


async def test_a_fork_is_told_and_its_copied_block_flashes(open_map):
    async with open_map() as ui:
        ui.client.step()
        block = own_block(ui)
        request = ui.client.requests[-1].request_id
        lit = flashing_blocks(ui)
        assert lit() == []
        fork = RequestForked(ui.client.time, request, "req-parent", 40, 2, block + 3)
        ui.client.event_ring.append(fork)
        ui.clock.now += FIGURES_S
        await ui.shown("fork", "2 blk +1 copied")
        assert lit() == [block, block + 1, block + 3]
        ui.clock.now += BLINK_S
        await ui.until(lambda: lit() == [], "the end of the flash")


async def test_an_old_event_is_told_and_does_not_flash(open_map):
    async with open_map() as ui:
        lit = flashing_blocks(ui)
        old = RequestForked(ui.client.time - 60, "req-child", "req-parent", 4, 0, None)
        ui.client.event_ring.append(old)
        new = RequestForked(ui.client.time, "req-later", "req-parent", 8, 0, None)
        ui.client.event_ring.append(new)
        ui.clock.now += FIGURES_S
        # Times count from the oldest event that the engine still knows.
        await ui.shown("0:00.0 fork", "4 tok 0 blk", "1:00.0 fork", "8 tok 0 blk")
        assert lit() == []


async def test_maximised_the_pane_lists_the_requests(open_map):
    async with open_map() as ui:
        request = ui.client.requests[-1].request_id
        await ui.gone("priority")
        await ui.press("f3", "f3")
        ui.clock.now += FIGURES_S
        await ui.shown("priority", "decode", short_id(request))
        ui.client.finish()
        await ui.gone("priority")


async def test_text_of_a_block_cannot_reach_the_terminal(open_map, monkeypatch):
    async with open_map() as ui:
        block = own_block(ui)
        describe = ui.client.block
        monkeypatch.setattr(
            ui.client, "block", lambda one: replace(describe(one), text="a\x1b]52;c;eA==\x07b")
        )
        await ui.press("f3", *["l"] * block)
        await ui.shown("ab")
        assert "\x1b" not in ui.text


def flashing_blocks(ui):
    """A function that returns the cells that flash now."""

    def lit():
        grid = kv_map(ui)._grid
        return np.flatnonzero(grid.reshape(-1) == FLASH).tolist()

    return lit
