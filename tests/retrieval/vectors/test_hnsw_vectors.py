"""An HNSW index proposes what an exact search finds; damage and deletion never change results."""

import numpy as np
import orjson
import pytest

from engine.retrieval.vectors import hnsw_vectors
from engine.retrieval.vectors.hnsw_vectors import HnswVectors
from engine.retrieval.vectors.vector_file import VectorFile

pytest.importorskip("usearch", reason="the extra `hnsw` is not installed")

DIMENSIONS = 48


def clustered(rows: int, seed: int = 0) -> np.ndarray:
    """Unit vectors around 40 directions, as texts about 40 subjects."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((40, DIMENSIONS))
    vectors = centres[random.integers(0, 40, rows)] + 0.8 * random.standard_normal(
        (rows, DIMENSIONS)
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(hnsw_vectors, "MIN_INDEXED_ROWS", 100)


@pytest.fixture
def vectors(tmp_path):
    with VectorFile.create(tmp_path / "1.vectors", DIMENSIONS, "f16") as file:
        file.append(clustered(3000))
        store = HnswVectors(file, min_rows=0)
        store.maintain(3000)
        yield store
        store.close()


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    return float(
        np.mean(
            [
                len(set(a) & set(b)) / len(b)
                for a, b in zip(found.tolist(), exact.tolist(), strict=True)
            ]
        )
    )


def test_it_finds_what_the_exact_search_finds_with_the_same_scores(vectors):
    queries = clustered(50, seed=1)
    slots, scores = vectors.search(queries, 10)
    exact_slots, exact_scores = vectors.file.search(queries, 10)

    assert vectors.indexed_rows == 3000
    assert recall(slots, exact_slots) > 0.97
    same = slots == exact_slots
    assert (scores[same] == exact_scores[same]).all()
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.01, 0.0])
def test_only_allowed_rows_are_found(vectors, share):
    allowed = np.random.default_rng(5).random(3000) < share
    queries = clustered(20, seed=2)
    slots, _ = vectors.search(queries, 10, allowed=allowed)
    exact, _ = vectors.file.search(queries, 10, allowed=allowed)

    assert allowed[slots[slots >= 0]].all()
    assert ((slots >= 0).sum(axis=1) == min(10, allowed.sum())).all()
    assert recall(slots, exact) > 0.97 if allowed.any() else True


def test_a_filter_that_excludes_all_neighbours_gives_what_is_left(vectors):
    """All proposals are excluded: the search is exact then."""
    query = clustered(1, seed=3)
    near, _ = vectors.file.search(query, 1500)
    allowed = np.ones(3000, np.bool_)
    allowed[near[0]] = False
    slots, _ = vectors.search(query, 10, allowed=allowed)
    assert (slots == vectors.file.search(query, 10, allowed=allowed)[0]).all()


def test_rows_that_are_not_indexed_are_found(vectors):
    new = clustered(40, seed=7)
    slots = vectors.append(new)
    vectors.maintain(3040)  # too few to extend the index

    assert vectors.indexed_rows == 3000
    found, _ = vectors.search(new, 1, allowed=np.ones(3040, np.bool_))
    assert found[:, 0].tolist() == list(slots)

    vectors.append(clustered(400, seed=8))
    vectors.maintain(3440)
    assert vectors.indexed_rows == 3440
    found, _ = vectors.search(new, 1)
    assert found[:, 0].tolist() == list(slots)


def test_an_index_is_there_after_opening_again_and_other_readers_notice_it(vectors, tmp_path):
    with VectorFile.open(tmp_path / "1.vectors") as file:
        reader = HnswVectors(file, min_rows=0)
        assert reader.indexed_rows == 3000
        vectors.append(clustered(1000, seed=4))
        vectors.maintain(4000)
        assert reader.indexed_rows == 4000


def test_deleted_vectors_are_in_no_file(vectors, tmp_path):
    deleted = np.arange(100, 150)
    stored = [vectors.file.read(np.array([one])).astype(np.float16).tobytes() for one in deleted]
    before = (tmp_path / "1.hnsw").read_bytes()
    assert all(one in before for one in stored)

    vectors.clear(deleted)
    vectors.sync()

    after = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert not any(one in after for one in stored)
    assert vectors.indexed_rows == 3000
    allowed = np.ones(3000, np.bool_)
    allowed[deleted] = False
    queries = clustered(50, seed=1)
    slots, _ = vectors.search(queries, 10, allowed=allowed)
    assert recall(slots, vectors.file.search(queries, 10, allowed=allowed)[0]) > 0.95


def test_deletion_is_complete_without_usearch_too(vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(hnsw_vectors, "is_available", lambda: False)
    with VectorFile.open(tmp_path / "1.vectors") as file:
        store = HnswVectors(file, min_rows=0)
        assert store.search(clustered(1), 5)[0].min() >= 0
        store.clear(np.array([5]))
        store.maintain(2999)
    assert [one.name for one in tmp_path.iterdir()] == ["1.vectors"]


def cut(path):
    path.with_suffix(".hnsw").write_bytes(path.with_suffix(".hnsw").read_bytes()[:5000])


def flip(path):
    data = bytearray(path.with_suffix(".hnsw").read_bytes())
    data[len(data) // 2] ^= 1
    path.with_suffix(".hnsw").write_bytes(data)


def spoil_description(path):
    path.with_suffix(".hnsw.json").write_text("{")


def remove_index(path):
    path.with_suffix(".hnsw").unlink()


def describe_more_rows(path):
    description = path.with_suffix(".hnsw.json")
    description.write_bytes(orjson.dumps(orjson.loads(description.read_bytes()) | {"rows": 9999}))


@pytest.mark.parametrize("damage", [cut, flip, spoil_description, remove_index, describe_more_rows])
def test_a_damaged_index_is_not_used_and_built_anew(vectors, tmp_path, damage):
    damage(tmp_path / "1.vectors")
    queries = clustered(5, seed=1)
    with VectorFile.open(tmp_path / "1.vectors") as file:
        store = HnswVectors(file, min_rows=0)
        assert store.indexed_rows == 0
        assert (store.search(queries, 10)[0] == file.search(queries, 10)[0]).all()
        store.maintain(3000)
        assert store.indexed_rows == 3000


def test_replaced_and_dropped_rows_leave_the_index(vectors):
    vectors.write(np.array([7]), clustered(1, seed=6))
    assert vectors.indexed_rows == 0
    assert vectors.search(clustered(1, seed=6), 1)[0][0, 0] == 7
    vectors.maintain(3000)
    vectors.truncate(2900)
    assert vectors.indexed_rows == 0
    assert vectors.rows == 2900


def test_an_index_that_misses_too_much_is_not_used(tmp_path, monkeypatch):
    built = []
    new_index = HnswVectors._new_index
    monkeypatch.setattr(HnswVectors, "_new_index", lambda self: built.append(1) or new_index(self))
    monkeypatch.setattr(hnsw_vectors, "MIN_RECALL", 1.01)
    with VectorFile.create(tmp_path / "1.vectors", DIMENSIONS) as file:
        store = HnswVectors(file, min_rows=0)
        store.append(clustered(1000))
        store.maintain(1000)
        assert store.indexed_rows == 0
        assert not (tmp_path / "1.hnsw").exists()
        slots, _ = store.search(clustered(5, seed=1), 10)
        assert (slots == file.search(clustered(5, seed=1), 10)[0]).all()
        store.append(clustered(400))
        store.maintain(1400)  # not tried again so soon
        assert len(built) == 1
        store.clear(np.array([3]))
        monkeypatch.setattr(hnsw_vectors, "MIN_RECALL", 0.9)
        store.append(clustered(200))
        store.maintain(1599)
        assert store.indexed_rows == 1600


def test_few_rows_have_no_index(tmp_path):
    with VectorFile.create(tmp_path / "1.vectors", DIMENSIONS) as file:
        store = HnswVectors(file, min_rows=2000)
        store.append(clustered(1999))
        store.maintain(1999)
        assert store.indexed_rows == 0
        store.append(clustered(1))
        store.maintain(2000)
        assert store.indexed_rows == 2000
