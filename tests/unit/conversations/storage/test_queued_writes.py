"""Writes that fail, or that a full disk refuses for a while."""

import pytest

from engine.conversations.errors import StoreError
from engine.conversations.storage import database_connection
from tests.fakes.full_disk import full_disk
from tests.unit.conversations.database import node
from tests.unit.conversations.talking import chat, saved_texts, wait_until


def test_a_failed_write_does_not_affect_others(store):
    store.trees.create("t", "A tree")
    store.nodes.add([node("a")], name="send")
    store.nodes.add([node("a")], name="send")
    store.nodes.add([node("c", "a")], name="send")
    with pytest.raises(StoreError, match="could not be saved"):
        store.writes.flush()
    assert store.nodes.get("c") is not None
    assert store.trees.head("t") == "c"
    store.writes.flush()


def test_what_is_said_while_the_disk_is_full_is_saved_when_there_is_room(session, client, store):
    chat(session, client, "before", "saved")
    store.writes.flush()
    first = session.tree_id
    with full_disk(store.file):
        chat(session, client, "one", "lost?")
        wait_until(lambda: session.writes.unsaved is not None)
        chat(session, client, "two", "lost, too?")
        session.conversations.open_new()
        chat(session, client, "elsewhere", "a new conversation")
        second = session.tree_id
        session.conversations.rename(second, "Beside")
        # All of it stays usable: in the list, when opened again, in a search.
        session.conversations.open(first)
        assert [view.text for view in session.path()][-2:] == ["two", "lost, too?"]
        assert [(tree.title, tree.messages) for tree in session.conversations.find("a new")] == [
            ("Beside", 2)
        ]
        assert {tree.id for tree in session.conversations.find()} == {first, second}
        with pytest.raises(StoreError, match="could not be saved"):
            session.operations.undo()
        with pytest.raises(StoreError, match="could not be saved"):
            session.close()
        assert saved_texts(store.file, first) == ["before", "saved"]
        (notice,) = iter(session.writes.take_notice, None)
        assert "cannot be saved" in notice
        assert "kept in memory" in notice
    store.writes.flush()
    assert session.writes.unsaved is None
    assert saved_texts(store.file, first) == [
        "before",
        "saved",
        "one",
        "lost?",
        "two",
        "lost, too?",
    ]
    assert saved_texts(store.file, second) == ["elsewhere", "a new conversation"]
    assert [tree.title for tree in store.searches.trees("elsewhere")] == ["Beside"]
    (notice,) = iter(session.writes.take_notice, None)
    assert "again" in notice
    store.check_integrity()
    session.close()


def test_an_answer_that_streams_while_the_disk_is_full_is_kept_once(session, client, store, clock):
    session.messages.send("hello")
    store.writes.flush()
    with full_disk(store.file):
        for _ in range(100):
            clock.now += 1
            client.write("word ")
            session.pump()
            wait_until(lambda: session.writes.unsaved is not None)
        store.writes.take_notice()
        with pytest.raises(StoreError):
            store.writes.flush()
        assert len(store.writes._writer._queue) < 5
    client.write("", eos=True)
    session.pump()
    store.writes.flush()
    assert saved_texts(store.file, session.tree_id) == ["hello", "word " * 100]


def test_a_transaction_that_sqlite_rolled_back_is_repeated(session, client, store, monkeypatch):
    chat(session, client, "before", "saved")
    pages = store.writes.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    connect = database_connection.connect

    def connect_limited(path):
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(database_connection, "connect", connect_limited)
        store.writes.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}"))
        chat(session, client, "long", "x" * 100_000)
        wait_until(lambda: session.writes.unsaved == "database or disk is full")
    wait_until(lambda: session.writes.unsaved is None and not session.writes.saving)
    assert saved_texts(store.file, session.tree_id)[2:] == ["long", "x" * 100_000]
    store.check_integrity()
