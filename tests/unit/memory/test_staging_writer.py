"""The writer with staging buffers: its thread, its buffers, and work that fails."""

import threading

import pytest

from engine.memory.staging_writer import StagingWriter


def fail():
    raise ValueError("a defect")


@pytest.mark.parametrize("threaded", [True, False])
def test_it_outlives_work_that_fails(threaded, caplog):
    writer = StagingWriter((8,), buffers=2, name="test", threaded=threaded)
    for _ in range(5):
        writer.submit(writer.buffer(wait=True), fail)
    written = []
    buffer = writer.buffer(wait=True)
    writer.submit(buffer, lambda: written.append(buffer.shape))
    writer.close()
    assert written == [(8,)]
    assert caplog.text.count("could not be written") == 5


def test_without_a_free_buffer_there_is_none_until_work_is_done():
    writer = StagingWriter((8,), buffers=1, name="test")
    proceed = threading.Event()
    writer.submit(writer.buffer(wait=False), proceed.wait)
    assert writer.buffer(wait=False) is None
    proceed.set()
    buffer = writer.buffer(wait=True)
    assert buffer.shape == (8,)
    writer.return_buffer(buffer)
    writer.close()
