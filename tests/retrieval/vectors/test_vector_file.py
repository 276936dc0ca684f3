"""Vector files against numpy in f32, across processes, and when they are damaged."""

import errno
import itertools
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import cpu_features
from engine.api.errors import InvalidRequest
from engine.retrieval.vectors.errors import DamagedVectors
from engine.retrieval.vectors.header import HEADER_BYTES, ROWS_OFFSET
from engine.retrieval.vectors.vector_file import MAX_RESULTS, VectorFile

TYPES = ["f32", "f16", "int8"]
TOLERANCE = {"f32": 0.0, "f16": 2.0**-11, "int8": 1 / 253.9}
"""The largest error of a stored value, relative to the largest value of its vector."""


def unit_vectors(count, dimensions, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def best(vectors, queries, k, allowed=None):
    """Slots and scores by numpy: higher scores first, then lower slots."""
    scores = queries @ vectors.T
    if allowed is not None:
        scores[:, ~allowed] = -np.inf
    slots = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return slots, np.take_along_axis(scores, slots, axis=1)


@pytest.mark.parametrize("level", cpu_features()["levels"])
def test_f32_finds_what_numpy_finds(tmp_path, level):
    vectors, queries = unit_vectors(3000, 384), unit_vectors(9, 384, seed=1)
    allowed = np.random.default_rng(2).random(3000) < 0.3
    with VectorFile.create(tmp_path / "v", 384, "f32") as file:
        file.append(vectors)
        for mask in (None, allowed):
            slots, scores = file.search(queries, 10, allowed=mask, dispatch=level)
            expected_slots, expected_scores = best(vectors, queries, 10, mask)
            assert (slots == expected_slots).all()
            np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(TYPES),
    dimensions=st.integers(1, 130),
    parts=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    k=st.integers(1, 30),
    packed=st.booleans(),
)
def test_any_file_answers_as_the_vectors_it_holds(
    tmp_path_factory, seed, dtype, dimensions, parts, k, packed
):
    rows = sum(parts)
    vectors = unit_vectors(rows, dimensions, seed)
    queries = unit_vectors(3, dimensions, seed + 1)
    random = np.random.default_rng(seed)
    allowed = random.random(rows) < 0.7
    cleared = np.flatnonzero(random.random(rows) < 0.1)
    path = tmp_path_factory.mktemp("any") / "v"
    with VectorFile.create(path, dimensions, dtype) as file:
        ends = np.cumsum([0, *parts]).tolist()
        for first, end in itertools.pairwise(ends):
            assert file.append(vectors[first:end]) == range(first, end)
        file.clear(cleared)
        file.sync()
    with VectorFile.open(path) as file:
        assert (file.rows, file.dimensions, file.dtype) == (rows, dimensions, dtype)
        held = file.read(np.arange(rows))
        vectors[cleared] = 0
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        assert (np.abs(held - vectors) <= largest * TOLERANCE[dtype] + 1e-7).all()
        mask = np.packbits(allowed, bitorder="little") if packed else allowed
        slots, scores = file.search(queries, k, allowed=mask)
        _, expected = best(held, queries, k, allowed)
        count = min(k, int(allowed.sum()))
        # Nearly equal scores may change places, so scores are compared, and those of the slots found.
        np.testing.assert_allclose(scores[:, :count], expected[:, :count], atol=2e-4)
        own = np.take_along_axis(queries @ held.T, slots[:, :count], axis=1)
        np.testing.assert_allclose(scores[:, :count], own, atol=2e-4)
        assert allowed[slots[:, :count]].all()
        assert all(len(set(row)) == count for row in slots[:, :count].tolist())
        assert (slots[:, count:] == -1).all()
        assert np.isneginf(scores[:, count:]).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_threads_queries_and_levels_leave_scores_as_they_are(tmp_path, dtype):
    vectors, queries = unit_vectors(20_000, 128), unit_vectors(5, 128, seed=1)
    with VectorFile.create(tmp_path / "v", 128, dtype) as file:
        file.append(vectors)
        slots, scores = file.search(queries, 7, threads=1)
        for threads in (2, 3):
            again = file.search(queries, 7, threads=threads)
            assert (again[0] == slots).all()
            assert (again[1] == scores).all()
        for at in range(5):
            alone = file.search(queries[at : at + 1], 7)
            assert (alone[0][0] == slots[at]).all()
            assert (alone[1][0] == scores[at]).all()


def test_equal_scores_are_ordered_by_slot(tmp_path):
    vectors = np.repeat(unit_vectors(2, 32), 500, axis=0)
    for dtype in TYPES:
        with VectorFile.create(tmp_path / dtype, 32, dtype) as file:
            file.append(vectors)
            slots, _ = file.search(vectors[-1:], 600)
            assert slots[0].tolist() == [*range(500, 1000), *range(100)]


def test_a_reader_in_another_process_sees_what_is_appended(tmp_path):
    path = tmp_path / "v"
    vectors = unit_vectors(6000, 64)
    reading = (
        "import sys; import numpy as np; from pathlib import Path\n"
        "from engine.retrieval.vectors.vector_file import VectorFile\n"
        "file = VectorFile.open(Path(sys.argv[1])); query = file.read(np.array([0]))\n"
        "for line in sys.stdin:\n"
        "    print(file.rows, file.search(query, file.rows)[0].max(), flush=True)\n"
    )
    with VectorFile.create(path, 64) as file:
        file.append(vectors[:1])
        child = subprocess.Popen(
            [sys.executable, "-c", reading, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for first, end in ((1, 2), (2, 500), (500, 6000)):
            file.append(vectors[first:end])
            child.stdin.write(b"\n")
            child.stdin.flush()
            assert child.stdout.readline().split() == [str(end).encode(), str(end - 1).encode()]
        child.communicate()
        assert child.returncode == 0


def test_dropped_and_cleared_vectors_leave_the_disk(tmp_path):
    path = tmp_path / "v"
    vectors = unit_vectors(10, 16)
    with VectorFile.create(path, 16, "f32") as file:
        file.append(vectors)
        reader = VectorFile.open(path)
        size = path.stat().st_size
        file.truncate(7)
        file.clear(np.array([2, 4]))
        left = path.read_bytes()
        for slot in range(10):
            assert (vectors[slot].tobytes() in left) == (slot not in (2, 4, 7, 8, 9))
        assert path.stat().st_size == size, "a shrinking file would kill readers"
        assert reader.rows == 7
        assert reader.search(vectors[9:], 10)[0][0].max() == 6
        assert file.append(vectors[8:]) == range(7, 9)
        assert reader.search(vectors[9:], 1)[0].tolist() == [[8]]
        reader.close()


def test_rows_of_an_interrupted_append_are_not_seen(tmp_path, monkeypatch):
    path = tmp_path / "v"
    vectors = unit_vectors(40, 16)
    with VectorFile.create(path, 16) as file:
        file.append(vectors[:3])
        real, full = os.pwrite, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def half(descriptor, data, offset):
            if len(data) > 100:
                return real(descriptor, data[:100], offset)
            raise full

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", half)
            with pytest.raises(OSError, match="No space left"):
                file.append(vectors[3:])
        assert file.rows == 3
        assert VectorFile.open(path).rows == 3
        assert file.append(vectors[3:]) == range(3, 40)
        np.testing.assert_allclose(file.read(np.arange(40)), vectors, atol=1e-3)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "not a vector file"),
        (lambda data: data[: HEADER_BYTES - 1], "not a vector file"),
        (lambda data: b"x" + data[1:], "not a vector file"),
        (lambda data: data[:8] + b"\x02" + data[9:], "version 2"),
        (lambda data: data[:12] + b"\xff" + data[13:], "header .* damaged"),
        (lambda data: data[:20] + b"\0\0\0\0" + data[24:], "header .* damaged"),
        (lambda data: data[:-1], "has 447 bytes, but its rows need 448"),
        (lambda data: data[:ROWS_OFFSET] + b"\xff" * 8 + data[ROWS_OFFSET + 8 :], "rows need"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, damage, reason):
    path = tmp_path / "v"
    with VectorFile.create(path, 32, "f32") as file:
        file.append(unit_vectors(3, 32))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedVectors, match=reason) as refused:
        VectorFile.open(path)
    assert "\n" not in str(refused.value)


def test_files_are_never_overwritten(tmp_path):
    path = tmp_path / "v"
    VectorFile.create(path, 8).close()
    with pytest.raises(FileExistsError):
        VectorFile.create(path, 8)
    with pytest.raises(FileNotFoundError):
        VectorFile.open(tmp_path / "none")


def test_arguments_that_do_not_fit_are_refused(tmp_path):
    for dimensions, dtype in ((0, "f16"), (-1, "f16"), (16_385, "f16"), (8, "int4")):
        with pytest.raises(InvalidRequest):
            VectorFile.create(tmp_path / "none", dimensions, dtype)
        assert not (tmp_path / "none").exists()
    vectors = unit_vectors(4, 8)
    with VectorFile.create(tmp_path / "v", 8) as file:
        file.append(vectors)
        for wrong in (vectors[0], vectors[:, :4], vectors.astype(np.float64)):
            with pytest.raises(InvalidRequest, match=r"\[n, 8\]"):
                file.append(wrong)
            with pytest.raises(InvalidRequest, match=r"\[n, 8\]"):
                file.search(wrong, 1)
        with pytest.raises(InvalidRequest, match="cannot store"):
            file.append(np.full((1, 8), np.nan, np.float32))
        with pytest.raises(InvalidRequest, match="finite"):
            file.search(np.full((1, 8), np.inf, np.float32), 1)
        for k in (0, MAX_RESULTS + 1):
            with pytest.raises(InvalidRequest, match="results"):
                file.search(vectors, k)
        with pytest.raises(InvalidRequest, match="bits in bytes"):
            file.search(vectors, 1, allowed=np.zeros(4, np.int64))
        for slots in ([4], [-1]):
            with pytest.raises(InvalidRequest, match="slot"):
                file.read(np.array(slots))
            with pytest.raises(InvalidRequest, match="slot"):
                file.clear(np.array(slots))
        with pytest.raises(InvalidRequest, match="4 vectors"):
            file.truncate(5)
        assert file.rows == 4
    with pytest.raises(ValueError, match="closed"):
        file.search(vectors, 1)


@pytest.mark.parametrize("dtype", TYPES)
def test_copies_are_bit_for_bit_and_durable(tmp_path, dtype):
    vectors = unit_vectors(9, 24)
    with (
        VectorFile.create(tmp_path / "old", 24, dtype) as old,
        VectorFile.create(tmp_path / "new", 24, dtype) as new,
        VectorFile.create(tmp_path / "other", 25, dtype) as other,
    ):
        old.append(vectors)
        new.append(vectors[:2])
        assert new.append_copies(old, np.array([7, 0, 8])) == range(2, 5)
        assert new.append_copies(old, np.array([], np.int64)) == range(5, 5)
        with pytest.raises(InvalidRequest, match="slot"):
            new.append_copies(old, np.array([9]))
        with pytest.raises(InvalidRequest, match="do not fit"):
            other.append_copies(old, np.array([0]))
        expected = old.read(np.array([0, 1, 7, 0, 8]))
    with VectorFile.open(tmp_path / "new") as new:
        assert (new.read(np.arange(new.rows)) == expected).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_replaced(tmp_path, dtype):
    vectors = unit_vectors(6, 24)
    with (
        VectorFile.create(tmp_path / "v", 24, dtype) as file,
        VectorFile.create(tmp_path / "expected", 24, dtype) as expected,
    ):
        file.append(vectors[:4])
        file.write(np.array([3, 1]), vectors[4:])
        expected.append(vectors[[0, 5, 2, 4]])
        assert (file.read(np.arange(4)) == expected.read(np.arange(4))).all()
        with pytest.raises(InvalidRequest, match="slot"):
            file.write(np.array([4]), vectors[:1])


def test_a_file_that_nobody_uses_any_more_is_closed(tmp_path):
    file = VectorFile.create(tmp_path / "v", 8)
    descriptor = file._descriptor
    os.fstat(descriptor)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_rows_that_are_appended_while_the_file_is_mapped_are_no_damage(tmp_path, monkeypatch):
    vectors = unit_vectors(3, 24)
    writer = VectorFile.create(tmp_path / "v", 24)
    writer.append(vectors[:1])
    map_file = mmap.mmap

    def append_after_mapping(*arguments, **options):
        mapped = map_file(*arguments, **options)
        monkeypatch.undo()
        writer.append(vectors[1:])
        return mapped

    monkeypatch.setattr(mmap, "mmap", append_after_mapping)
    with VectorFile.open(tmp_path / "v") as file, writer:
        assert len(file.read(np.arange(3))) == 3
