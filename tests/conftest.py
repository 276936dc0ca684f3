"""Fixtures every part of the suite may use."""

import atexit
import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore
from tests.fakes.undurable_disk import use_undurable_disk

use_undurable_disk()

# Commands that a test runs find nothing that an earlier one swapped out, and leave nothing behind.
os.environ["PRAVAHA_SWAP_BYTES"] = "0"

# A loaded machine makes a test slow, never wrong. `make test` draws the same examples each time, so that it
# judges the change and not the draw; `make fuzz` draws new ones.
settings.register_profile("fuzz", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("test", settings.get_profile("fuzz"), derandomize=True, database=None)
settings.load_profile("test")

GARBAGE_THRESHOLD = 50_000
"""Allocations before a collection of garbage."""


gc.disable()  # until the tests begin: what their modules make stays
# At its end the interpreter collects everything, and native modules report what is left. Pytest's own end,
# which collects five times, is too early for it.
atexit.register(gc.unfreeze)


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and none of the modules and tests: it took a quarter of a test's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The demo model's GGUF file, fetched once into the user's cache."""
    return ModelStore().add(SMOLLM2.name).path
