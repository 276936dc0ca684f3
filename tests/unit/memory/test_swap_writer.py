"""The writer of the swap tier: failures of the store."""

import pytest

from engine.memory.swap_writer import SwapWriter


class BrokenStore:
    """Fails to fill; notes what was abandoned."""

    def __init__(self, error):
        self.error = error
        self.abandoned = []

    def fill(self, entries, data):
        raise self.error

    def abandon(self, entries):
        self.abandoned += entries


@pytest.mark.parametrize("error", [OSError("disk full"), ValueError("a defect")])
def test_the_writer_outlives_a_failed_write(error, caplog):
    store = BrokenStore(error)
    writer = SwapWriter(store, 64)
    for entry in range(6):
        writer.write([entry], writer.buffer(wait=True), 0.0)
    writer.wait_until_written()
    writer.close()
    assert store.abandoned == list(range(6))
    assert "could not be written" in caplog.text
