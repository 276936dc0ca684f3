"""A conversation database that is removed or replaced while it is open."""

import shutil
import sqlite3
from concurrent.futures import Future

import pytest

from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(file):
    store = Store.open(file)
    store.trees.create("t", "A tree")
    add(store, "a", "kept before")
    store.writes.flush()
    yield store
    store.close()


def add(store, name, text):
    node = Node(name, "t", None, NodeKind.USER, text, NodeStatus.DONE, 1.0)
    store.nodes.add([node], name="send")


def texts(file):
    connection = sqlite3.connect(file)
    try:
        return [text for (text,) in connection.execute("SELECT text FROM node ORDER BY n")]
    finally:
        connection.close()


def remove(file):
    for path in file.parent.glob("conversations.db*"):
        if path.is_file():
            path.unlink()


def notices(store):
    return list(iter(store.writes.take_notice, None))


def test_the_next_write_puts_a_removed_file_back(store, file):
    remove(file)
    add(store, "b", "written after")
    store.writes.flush()
    assert texts(file) == ["kept before", "written after"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [n for n in notices(store) if "was removed while it was in use" in n] != []
    store.check_integrity()
    assert sorted(path.name for path in file.parent.glob("*.restored*")) == []


def test_reading_follows_to_the_restored_file(store, file):
    assert store.searches.start_messages("kept").result()[0].node_id == "a"
    remove(file)
    assert store.trees.get("t").title == "A tree"
    add(store, "b", "written after")
    store.writes.flush()
    assert [node.id for node in store.nodes.of_tree("t")] == ["a", "b"]
    found: Future = store.searches.start_messages("written after")
    assert [hit.node_id for hit in found.result()] == ["b"]


def test_a_removed_folder_is_put_back_when_the_store_is_closed(store, file):
    shutil.rmtree(file.parent)
    store.close()
    assert texts(file) == ["kept before"]


def test_the_journal_of_the_removed_file_is_not_read_as_one_of_the_new_file(store, file):
    file.unlink()
    assert file.with_name("conversations.db-wal").exists()
    add(store, "b", "written after")
    store.writes.flush()
    assert texts(file) == ["kept before", "written after"]
    store.check_integrity()


def test_of_two_processes_one_puts_the_file_back_and_both_go_on(store, file):
    beside = Store.open(file)
    try:
        remove(file)
        add(store, "b", "from one")
        store.writes.flush()
        add(beside, "c", "from the other")
        beside.writes.flush()
        assert texts(file) == ["kept before", "from one", "from the other"]
        assert [node.id for node in store.nodes.of_tree("t")] == ["a", "b", "c"]
    finally:
        beside.close()


def test_what_cannot_be_put_back_stays_in_memory_until_it_can(store, file):
    shutil.rmtree(file.parent)
    file.parent.write_text("a file in the folder's place")
    add(store, "b", "written meanwhile")
    while store.writes.unsaved is None:
        pass
    assert "was removed and cannot be written again" in store.writes.unsaved
    file.parent.unlink()
    add(store, "c", "written after")
    while store.writes.saving:
        pass
    assert texts(file) == ["kept before", "written meanwhile", "written after"]
