"""States in files and in memory: found by key, verified, bounded."""

import os
import threading

import numpy as np
import pytest

from engine.memory.state_key import StateKeys
from engine.memory.state_store import StateStore

BYTES = 1000


def open_store(folder, states=4, **options):
    return StateStore(
        folder, state_bytes=BYTES, capacity_bytes=states * (BYTES + 64), threaded=False, **options
    )


def put(store, key, tokens=32):
    buffer = store.buffer(wait=False)
    buffer[:] = key[0]
    store.put(key, tokens, buffer)


def key(number):
    return bytes([number]) * 32


@pytest.fixture(params=["file", "memory"])
def folder(request, tmp_path):
    return tmp_path / "states" if request.param == "file" else None


def test_a_state_is_found_by_its_key(folder):
    store = open_store(folder)
    put(store, key(1), 64)
    assert store.has(key(1))
    assert (store.get(key(1)) == 1).all()
    assert store.get(key(2)) is None
    assert store.lengths() == [64]
    assert len(store) == 1


def test_the_least_recently_used_state_goes_first(folder):
    store = open_store(folder, states=3)
    for number in (1, 2, 3):
        put(store, key(number), number)
    store.get(key(1))
    put(store, key(4), 4)
    assert [number for number in range(1, 5) if store.has(key(number))] == [1, 3, 4]
    assert sorted(store.lengths()) == [1, 3, 4]


def test_a_bound_below_one_state_keeps_one(folder):
    store = open_store(folder, states=0)
    put(store, key(1))
    put(store, key(2))
    assert len(store) == 1


def test_files_are_found_again_in_the_order_of_their_use(tmp_path):
    store = open_store(tmp_path)
    for number in (1, 2, 3):
        put(store, key(number), number)
    for age, number in enumerate((2, 3, 1)):
        path = tmp_path / f"{key(number).hex()}-{number}.state"
        os.utime(path, (1e9 - age, 1e9 - age))
    again = open_store(tmp_path, states=2)
    assert [number for number in range(1, 4) if again.has(key(number))] == [2, 3]
    assert (again.get(key(3)) == 3).all()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1] + b"!",
        lambda content: content[:-1],
        lambda content: content + b"!",
        lambda content: b"!" + content[1:],
        lambda content: b"",
        lambda content: content[:20],
    ],
    ids=["bit", "short", "long", "magic", "empty", "header"],
)
def test_a_damaged_file_is_no_state(tmp_path, damage):
    store = open_store(tmp_path)
    put(store, key(1))
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert store.get(key(1)) is None
    assert store.num_damaged == 1
    assert not store.has(key(1))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_removed_is_no_state(tmp_path, caplog):
    store = open_store(tmp_path)
    put(store, key(1))
    next(tmp_path.iterdir()).unlink()
    assert store.get(key(1)) is None
    assert "cannot be read" in caplog.text


def test_what_is_no_state_file_is_removed_or_left_alone(tmp_path):
    for name in ("aa-1.part", "zz-1.state", f"{key(1).hex()}-x.state", "notes.txt", "a-01.state"):
        (tmp_path / name).write_bytes(b"")
    assert len(open_store(tmp_path)) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_files_are_private(tmp_path):
    store = open_store(tmp_path / "states")
    put(store, key(1))
    (path,) = (tmp_path / "states").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "states").stat().st_mode & 0o077 == 0


def test_a_disk_that_refuses_costs_the_state(tmp_path, monkeypatch, caplog):
    store = open_store(tmp_path)
    monkeypatch.setattr("engine.memory.state_store._header", lambda data: _refuse())
    put(store, key(1))
    assert not store.has(key(1))
    assert "could not be stored" in caplog.text
    monkeypatch.undo()
    put(store, key(1))  # the buffer came back
    assert store.has(key(1))


def _refuse():
    raise OSError("no space left")


def test_the_writer_has_its_own_thread_and_as_many_buffers(tmp_path):
    store = StateStore(tmp_path, state_bytes=BYTES, capacity_bytes=10**6)
    started = threading.active_count()
    for number in range(1, 6):
        buffer = store.buffer(wait=True)
        buffer[:] = number
        store.put(key(number), number, buffer)
    assert threading.active_count() == started + 1
    store.close()
    assert threading.active_count() == started
    assert sorted(store.lengths()) == [1, 2, 3, 4, 5]


def test_a_key_is_of_salt_and_tokens():
    tokens = np.arange(100, dtype=np.int32)
    keys = StateKeys()
    (one, longer) = keys.of_prefixes(tokens, b"", [32, 64])[::-1]
    assert [one[0], longer[0]] == [32, 64]
    assert one[1] != longer[1]
    assert keys.of_prefixes(tokens[:64], b"", [64]) == [longer]
    assert keys.of_prefixes(tokens, b"salt", [32]) != [one]
    assert keys.of_prefixes(tokens + 1, b"", [32]) != [one]


def test_keys_of_a_row_continue_where_they_ended():
    tokens = np.arange(100, dtype=np.int32)
    keys = StateKeys()
    expected = dict(keys.of_prefixes(tokens, b"s", [32, 64]))
    assert keys.of_row(0, tokens[:32], b"s") == expected[32]
    assert keys.of_row(0, tokens[:64], b"s") == expected[64]
    keys.forget(0)
    assert keys.of_row(0, tokens[:32], b"s") == expected[32]
