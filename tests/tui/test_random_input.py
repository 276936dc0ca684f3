"""Whatever is pressed, clicked, pasted or resized, the app runs on, without an exception."""

import logging
import os
import random

import pytest

from app.tui import toasts
from tests.fakes.fake_client import FakeClient
from tests.fakes.installed_models import HUGE, LOADED, OTHER
from tests.tui.harness import open_screen
from tests.tui.random_input import RandomUser

SEEDS = (1, pytest.param(2, marks=pytest.mark.soak), pytest.param(3, marks=pytest.mark.soak))
EVENTS = 250
SOAK_EVENTS = 10_000


async def use_at_random(folder, caplog, seed, count):
    caplog.set_level(logging.ERROR)
    client = FakeClient(blocks=4096)
    client.installed = [LOADED, HUGE, OTHER]
    async with open_screen(folder, client=client, size=(120, 36)) as ui:
        user = RandomUser(ui, seed)
        # Only a failure may end the app.
        ui.app.open_url = lambda *_, **__: None
        leave, ui.app.exit = ui.app.exit, lambda *_, **__: None
        for number in range(count):
            await user.act()
            if number % 20 == 0:
                await ui.pilot.pause()
            recent = f"seed {seed}, event {number}: {user.log[-40:]}"
            assert ui.app.is_running, recent
            assert not ui.app.failures.first, recent
        await ui.until(lambda: not ui.app.input_pending, "the last key")
        ui.app.exit = leave
        ui.session._store.check_integrity()
        # A message that is refused, such as one longer than the context, is no failure of the screen.
        records = [record for record in caplog.records if record.name != toasts.__name__]
        assert records == [], f"seed {seed}: {user.log[-40:]}"


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_input_neither_ends_the_app_nor_raises(tmp_path, caplog, seed):
    await use_at_random(tmp_path, caplog, seed, EVENTS)


@pytest.mark.soak
async def test_ten_thousand_random_events_of_a_new_seed(tmp_path, caplog):
    seed = int(os.environ.get("PRAVAHA_TEST_SEED") or random.randrange(10**6))
    await use_at_random(tmp_path, caplog, seed, SOAK_EVENTS)
