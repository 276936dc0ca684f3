"""The log pane: newest records, filters by level and text, following."""

import logging

import pytest

from app.text.log_ring import CAPACITY, kept_log
from app.tui.widgets.log_pane import LogPane

log = logging.getLogger("engine.test")


@pytest.fixture
def ring():
    with kept_log() as kept:
        yield kept


def test_the_ring_keeps_the_newest_records_without_control_sequences(ring):
    for number in range(CAPACITY + 5):
        log.info("record %d\x1b[2J", number)
    log.debug("what was said")
    texts = [entry.text for entry in ring.entries()]
    assert (len(texts), texts[0], texts[-1]) == (CAPACITY, "record 5", f"record {CAPACITY + 4}")


def test_the_ring_names_the_exception(ring):
    try:
        raise ValueError("of a kind")
    except ValueError:
        log.exception("It failed.")
    assert ring.entries()[-1].text == "It failed. ValueError: of a kind"


def test_levels_are_restored_afterwards():
    before = logging.getLogger("engine").level
    with kept_log() as ring:
        pass
    log.info("not kept")
    assert logging.getLogger("engine").level == before
    assert not ring.entries()


async def test_it_shows_records_and_toasts_and_filters_them(screen, ring):
    async with screen(log_ring=ring) as ui:
        log.info("The swap tier has 12 GiB.")
        ui.app.notify_safely("The disk is full.", "warning")
        await ui.press("f7")
        await ui.shown("The swap tier has 12 GiB.", "warning")
        assert isinstance(ui.app.focused, LogPane)
        await ui.press("l")
        await ui.shown("warnings and errors")
        await ui.gone("The swap tier has 12 GiB.")
        await ui.press("l", "l", "slash")
        await ui.type("swap")
        await ui.press("enter")
        await ui.shown("The swap tier has 12 GiB.", "“swap”")
        assert isinstance(ui.app.focused, LogPane)
        await ui.press("escape")
        await ui.gone("“swap”")
        assert ui.app.layout.pane == "logs"
        await ui.press("escape")
        assert ui.app.layout.pane == "chat"


async def test_it_follows_the_newest_record_unless_it_is_scrolled_up(screen, ring):
    async with screen(log_ring=ring) as ui:
        for number in range(100):
            log.info("record %d.", number)
        await ui.press("f7")
        await ui.shown("record 99.")
        log.info("record 100.")
        await ui.shown("record 100.")
        await ui.press("k", "k")
        await ui.shown("2 newer below", "record 98.")
        await ui.settled()
        log.info("record 101.")
        await ui.shown("3 newer below")
        assert "record 101." not in ui.text
        await ui.press("g")
        await ui.shown("record 0.")
        await ui.press("G")
        await ui.shown("record 101.")
