"""Deleting for good: nothing of the conversation is left, nothing of the others is touched."""

import sqlite3

from engine.conversations.session import TreeSession
from tests.fakes.chat_toys import ToyClient


def chats(store, *topics):
    client = ToyClient()
    session = TreeSession(store, client)
    ids = []
    for topic in topics:
        ids.append(session.conversations.open_new())
        session.messages.send(f"about {topic}")
        client.write(f"{topic} are fine", eos=True)
        session.pump()
        session.branches.expand(2)
        for at in (-1, -2):
            client.write("more", eos=True, at=at)
        session.pump()
        session.branches.prune(session.head)
    return session, ids


def rows(store, tree_id):
    store.writes.flush()
    connection = sqlite3.connect(store.file)
    try:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if any(one[1] == "tree_id" for one in connection.execute(f"PRAGMA table_info({name})"))
        ]
        assert len(tables) >= 4
        return sum(
            connection.execute(
                f"SELECT count(*) FROM {name} WHERE tree_id = ?", (tree_id,)
            ).fetchone()[0]
            for name in tables
        )
    finally:
        connection.close()


def test_an_archived_conversation_is_deleted_with_all_its_rows(store):
    session, (rivers, hills) = chats(store, "rivers", "hills")
    before = rows(store, hills)
    assert rows(store, rivers) > 0
    session.conversations.archive(rivers)
    assert session.conversations.erase([rivers]) == 1
    assert rows(store, rivers) == 0
    assert rows(store, hills) == before
    assert store.trees.get(rivers) is None
    assert session.conversations.find_messages("rivers") == []
    assert session.conversations.find_messages("hills")
    store.check_integrity()


def test_a_conversation_that_is_not_archived_is_kept(store):
    session, (rivers,) = chats(store, "rivers")
    assert session.conversations.erase([rivers]) == 0
    assert [tree.id for tree in session.conversations.find()] == [rivers]


def test_the_open_conversation_is_left_first(store):
    session, (rivers,) = chats(store, "rivers")
    session.conversations.archive(rivers)
    session.conversations.open(rivers)
    assert session.conversations.erase([rivers]) == 1
    assert session.tree_id != rivers
    assert session.path() == []
    session.messages.send("goes on")
    store.check_integrity()


def test_the_archive_is_listed_and_undone(store):
    session, (rivers, hills) = chats(store, "rivers", "hills")
    session.conversations.archive(rivers)
    assert [tree.id for tree in session.conversations.find(archived=True)] == [rivers]
    assert [tree.id for tree in session.conversations.find()] == [hills]
    session.conversations.unarchive(rivers)
    assert session.conversations.find(archived=True) == []
    assert {tree.id for tree in session.conversations.find()} == {rivers, hills}


def test_a_filtered_list_has_the_matching_lines(store):
    session, _ = chats(store, "rivers", "hills")
    assert [tree.match for tree in session.conversations.find("RIVERS are")] == ["rivers are fine"]
    assert [tree.match for tree in session.conversations.find("ri")] == ["rivers are fine"]
    assert [tree.match for tree in session.conversations.find()] == ["", ""]
