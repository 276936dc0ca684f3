"""The database file: permissions, WAL mode, damage."""

import stat

import pytest

from engine.conversations.errors import StoreError
from engine.conversations.storage.store import Store
from tests.unit.conversations.database import execute, node


@pytest.fixture
def store(file):
    store = Store.open(file)
    yield store
    store.close()


def test_only_the_user_may_read_the_files(store, file):
    store.writes.flush()
    for path in [file, *file.parent.glob("conversations.db-*")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_database_is_in_wal_mode(store, file):
    assert execute(file, "PRAGMA journal_mode") == [("wal",)]


def test_a_damaged_file_is_set_aside(file):
    file.parent.mkdir()
    file.write_bytes(b"this is no database" * 100)
    store = Store.open(file)
    (aside,) = file.parent.glob("conversations.damaged-*.db")
    assert aside.read_bytes().startswith(b"this is no database")
    assert str(aside) in store.writes.take_notice()
    assert store.searches.trees() == []
    store.close()


def test_damaged_pages_are_found_after_an_unclean_exit(file):
    store = Store.open(file)
    store.trees.create("t", "A tree")
    for number in range(200):
        store.nodes.add([node(f"n{number}", text="words " * 50)], name="send")
    store.close()
    damaged = bytearray(file.read_bytes())
    for page in range(4096 * 3, len(damaged) - 4096, 4096):
        damaged[page : page + 64] = b"\xff" * 64
    file.write_bytes(damaged)
    (file.parent / "conversations.db.writers").mkdir(exist_ok=True)
    (file.parent / "conversations.db.writers" / "DEAD").touch()
    store = Store.open(file)
    assert "damaged" in store.writes.take_notice()
    store.close()


def test_a_directory_that_cannot_be_created_is_an_error_in_one_sentence(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match="PRAVAHA_DATA_DIR"):
        Store.open(tmp_path / "data" / "c.db")
