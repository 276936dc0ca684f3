"""Pin, warm and show the KV of a path; the prefix cache as a tree."""

import pytest

from app.tui.view.kv_cells import LIT_ABOVE, PATH_0, Cell, block_cells
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.kv_tree import KvTree
from engine.api.block_detail import PrefixChain, PrefixTree
from engine.api.errors import QueueFull
from engine.api.events import PrefixHit, PrefixPinned, PrefixUnpinned, RequestFinished
from engine.api.request import FinishReason, Timings
from engine.api.residency import Residency
from tests.fakes.fake_client import BLOCK_SIZE
from tests.tui.harness import converse


def rivers(session, client):
    converse(session, client, ("Tell me of rivers", "All about rivers."))


def chains(*blocks):
    return PrefixTree(
        tuple(
            PrefixChain(-1, one[0], len(one), 0, 0, 0, f"text of {one[0]}", one) for one in blocks
        ),
        16,
        truncated=False,
    )


async def test_a_pin_reports_what_it_covers_and_the_same_key_ends_it(screen):
    async with screen(prepare=rivers) as ui:
        client = ui.client
        await ui.press("shift+tab", "p")
        ((pin_id, tokens),) = client.pins.items()
        assert tokens == ui.session.tokens.prompt_ids(ui.session.head)
        client.event_ring.append(PrefixPinned(client.time, pin_id, len(tokens), 3))
        said = f"Pinned 3 blocks: 48 of {len(tokens)} tokens stay in the pool."
        await ui.until(lambda: said in ui.toasts, said)
        await ui.press("p")
        assert not client.pins
        client.event_ring.append(PrefixUnpinned(client.time, pin_id, 3, dropped=False))
        await ui.until(lambda: "Unpinned 3 blocks." in ui.toasts, "the end of the pin")
        await ui.settled()


async def test_a_pin_without_blocks_is_forgotten(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("shift+tab", "p")
        (pin_id,) = ui.client.pins
        ui.client.event_ring.append(PrefixPinned(ui.client.time, pin_id, 40, 0))
        await ui.until(lambda: any("Nothing is pinned" in one for one in ui.toasts), "the toast")
        await ui.press("p")
        assert len(ui.client.pins) == 2


async def test_a_dropped_pin_is_reported(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("shift+tab", "p")
        (pin_id,) = ui.client.pins
        ring, time = ui.client.event_ring, ui.client.time
        ring.append(PrefixPinned(time, pin_id, 40, 2))
        await ui.settled()
        ring.append(PrefixUnpinned(time, pin_id, 2, dropped=True))
        ui.client.wake()
        await ui.until(lambda: any("dropped" in one for one in ui.toasts), "the toast")


async def test_warming_reports_what_was_computed(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("shift+tab", "w")
        request = ui.client.requests[-1]
        assert request.sampling.max_tokens == 0
        ring, time = ui.client.event_ring, ui.client.time
        ring.append(PrefixHit(time, request.request_id, 32, 2, None))
        ring.append(
            RequestFinished(
                time + 0.5,
                request.request_id,
                FinishReason.LENGTH,
                60,
                0,
                Timings(time, None, None, None),
                None,
            )
        )
        ui.clock.now += 1.0
        said = "Computed 28 of 60 tokens in 500 ms; 32 were in the pool."
        await ui.until(lambda: said in ui.toasts, said)


async def test_an_empty_conversation_has_nothing_to_pin(screen):
    async with screen() as ui:
        await ui.press("shift+tab", "p")
        await ui.until(lambda: any("is empty" in one for one in ui.toasts), "the refusal")


@pytest.mark.parametrize("columns", [160, 100])
async def test_the_blocks_of_a_path_are_highlighted(screen, monkeypatch, columns):
    async with screen(prepare=rivers, size=(columns, 40)) as ui:
        monkeypatch.setattr(
            ui.client, "residency", lambda ids: Residency(len(ids), 32, 0, (3, 4)), raising=True
        )
        await ui.press("shift+tab", "v")
        await ui.until(lambda: any("in 2 blocks" in one for one in ui.toasts), "the toast")
        shown = ui.app.query_one(KvMap)
        assert ui.app.focused is shown
        assert [path.tolist() for path in shown.paths] == [[3, 4]]
        assert shown.cursor == 3
        codes = block_cells(ui.client.blocks(-1), None, None, paths=shown.paths)
        assert codes[3] == codes[4] == Cell.LIT
        await ui.press("enter")
        assert not shown.paths


async def test_of_two_marked_answers_the_shared_blocks_are_shown_and_counted(screen, monkeypatch):
    def two(session, client):
        rivers(session, client)
        client.answers.appendleft("Nothing about rivers.")
        session.branches.regenerate()
        client.finish()
        session.pump()

    async with screen(prepare=two, size=(160, 40)) as ui:
        blocks = iter([(3, 4, 5), (3, 4, 8, 9)])
        monkeypatch.setattr(
            ui.client, "residency", lambda ids: Residency(len(ids), 48, 0, next(blocks))
        )
        await ui.press("shift+tab", "space", "h", "space")
        await ui.shown("v shared KV")
        await ui.press("v")
        said = (
            f"Both paths share 2 blocks of the KV pool ({2 * BLOCK_SIZE} tokens); "
            "1 and 2 blocks belong to one of them only."
        )
        await ui.until(lambda: said in ui.toasts, said)
        await ui.shown("in both 2", "1st only 1", "2nd only 2")
        codes = block_cells(ui.client.blocks(-1), None, None, paths=ui.app.query_one(KvMap).paths)
        assert codes[[3, 4, 5, 8, 9]].tolist() == [
            LIT_ABOVE, LIT_ABOVE, PATH_0, PATH_0 + 1, PATH_0 + 1,
        ]  # fmt: skip
        ui.client.begin_change("other")
        ui.client.finish_change()
        await ui.gone("in both")  # the blocks of another model's pool


async def test_v_shows_the_tree_and_enter_lights_a_chain(screen, monkeypatch):
    async with screen(prepare=rivers, size=(160, 40)) as ui:
        monkeypatch.setattr(ui.client, "prefix_tree", lambda: chains((0, 1), (5, 6, 7)))
        await ui.press("f3", "v")
        await ui.shown("2 chains, 5 blocks, 80 tokens", "text of 0", "text of 5")
        assert isinstance(ui.app.focused, KvTree)
        await ui.press("down", "enter")
        await ui.shown("KV map")
        shown = ui.app.query_one(KvMap)
        assert ui.app.focused is shown
        assert [path.tolist() for path in shown.paths] == [[5, 6, 7]]


async def test_the_tree_is_read_at_most_once_a_second(screen, monkeypatch):
    async with screen(prepare=rivers, size=(160, 40)) as ui:
        readings = []
        monkeypatch.setattr(ui.client, "prefix_tree", lambda: readings.append(1))
        await ui.press("f3", "v")
        await ui.until(lambda: readings, "the first reading")
        for _ in range(3):
            ui.client.wake()
            await ui.pilot.pause()
        assert len(readings) == 1
        ui.clock.now += 1.0
        await ui.until(lambda: len(readings) == 2, "the second reading")
        await ui.settled()
        ui.clock.now += 5.0
        ui.client.wake()
        await ui.settled()
        assert len(readings) == 2


async def test_a_refused_warming_is_reported(screen):
    async with screen(prepare=rivers) as ui:
        ui.client.refuse = QueueFull("The queue is full.")
        await ui.press("shift+tab", "w")
        await ui.until(lambda: ui.toasts, "the reason")
        assert ui.toasts == ["The queue is full."]
