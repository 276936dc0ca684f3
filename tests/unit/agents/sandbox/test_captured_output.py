"""Head and tail of a stream, and the whole in a file."""

import random
import resource

import pytest

from agents.sandbox.captured_output import (
    HEAD_BYTES,
    MAX_ARTIFACT_BYTES,
    TAIL_BYTES,
    OutputCapture,
)

KEPT = HEAD_BYTES + TAIL_BYTES


def capture(data, artifact=None):
    chunks = random.Random(0)
    one = OutputCapture(artifact)
    while data:
        size = chunks.choice([1, 100, 5_000, 65_536])
        one.add(data[:size])
        data = data[size:]
    return one.close()


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES, HEAD_BYTES + 1, KEPT])
def test_what_fits_is_kept_whole(tmp_path, size):
    data = random.Random(1).randbytes(size)
    output = capture(data, tmp_path / "out")
    assert output.head + output.tail == data
    assert output.artifact is None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [KEPT + 1, 3 * KEPT])
def test_of_more_head_and_tail_are_kept_and_all_is_in_the_artifact(tmp_path, size):
    data = random.Random(2).randbytes(size)
    output = capture(data, tmp_path / "out")
    assert (output.head, output.tail) == (data[:HEAD_BYTES], data[-TAIL_BYTES:])
    assert output.left_out == size - KEPT
    assert f"[… {size - KEPT:,} bytes left out …]" in output.text
    assert output.artifact.read_bytes() == data


def test_the_artifact_is_bounded(tmp_path):
    one = OutputCapture(tmp_path / "out")
    for _ in range(20):
        one.add(bytes(1 << 20))
    output = one.close()
    assert output.size == 20 << 20
    assert output.artifact.stat().st_size == MAX_ARTIFACT_BYTES


def test_an_artifact_that_cannot_be_written_costs_the_middle_only(tmp_path):
    data = random.Random(3).randbytes(2 * KEPT)
    output = capture(data, tmp_path / "missing" / "out")
    assert (output.head, output.tail, output.artifact) == (
        data[:HEAD_BYTES], data[-TAIL_BYTES:], None
    )  # fmt: skip


def test_a_full_disk_costs_the_middle_only(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * KEPT, limits[1]))  # writing more fails
    try:
        output = capture(bytes(8 * KEPT), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (output.size, output.artifact) == (8 * KEPT, None)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / "out").write_text("mine")
    assert capture(bytes(2 * KEPT), tmp_path / "out").artifact is None
    assert (tmp_path / "out").read_text() == "mine"
