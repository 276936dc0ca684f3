"""Opening the store on a full disk: a copy is read, and what is said is kept until there is room."""

import sqlite3
import time

import pytest

from engine.conversations.errors import StoreError
from engine.conversations.session import TreeSession
from engine.conversations.storage import migrations
from engine.conversations.storage.memory_copy import MemoryCopy
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ToyClient
from tests.fakes.full_disk import full_disk

PATIENCE_S = 30


def say(store, text, answer):
    client = ToyClient()
    session = TreeSession(store, client)
    session.messages.send(text)
    client.write(answer, eos=True)
    session.pump()
    return session


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "folder" / "c.db"


def test_what_is_there_is_read_and_what_is_said_is_saved_when_there_is_room(file):
    store = Store.open(file)
    say(store, "about herons", "They fly.").close()
    store.close()
    with full_disk(file):
        store = Store.open(file)
        assert store.writes.unsaved is not None
        wait_until(lambda: "cannot be saved" in (store.writes.take_notice() or ""))
        assert [hit.text for hit in store.searches.messages("heron")] == ["about herons"]
        session = say(store, "and hills", "They do not.")
        texts = ["about herons", "They fly.", "and hills", "They do not."]
        assert [view.text for view in session.path()] == texts
        assert [tree.title for tree in session.conversations.start_find("heron").result()] == [
            "about herons"
        ]
    wait_until(lambda: store.writes.unsaved is None)
    assert [tree.title for tree in session.conversations.start_find("hills").result()] == [
        "about herons"
    ]
    assert [tree.messages for tree in session.conversations.find()] == [4]
    session.close()
    store.close()
    store = Store.open(file)
    store.check_integrity()
    assert [view.text for view in TreeSession(store, ToyClient()).path()] == texts
    store.close()


def test_the_first_start_ever_begins_in_memory(file):
    file.parent.mkdir()
    with full_disk(file):
        store = Store.open(file)
        session = say(store, "hello", "hi")
        assert [tree.title for tree in session.conversations.find()] == ["hello"]
    wait_until(lambda: store.writes.unsaved is None)
    session.close()
    assert [tree.title for tree in store.searches.trees()] == ["hello"]
    store.check_integrity()
    store.close()


def test_what_was_never_saved_is_reported_at_the_end(file):
    with full_disk(file):
        store = Store.open(file)
        session = say(store, "hello", "hi")
        with pytest.raises(StoreError, match="could not be saved"):
            session.close()
        store.close()


def test_an_older_schema_is_migrated_in_the_copy_only(file, monkeypatch):
    file.parent.mkdir()
    monkeypatch.setattr(migrations, "_SCRIPTS", migrations._SCRIPTS[:1])
    connection = sqlite3.connect(file, isolation_level=None)
    migrations.migrate(connection, file)
    connection.close()
    monkeypatch.undo()
    copy = MemoryCopy(file)
    assert copy.connect().execute("SELECT count(*) FROM draft").fetchone() == (0,)
    copy.close()
    assert sqlite3.connect(file).execute("PRAGMA user_version").fetchone() == (1,)


def test_an_answer_that_was_cut_off_is_not_shown_as_running(file):
    store = Store.open(file)
    client = ToyClient()
    session = TreeSession(store, client)
    session.messages.send("hello")
    session.pump()
    store.writes.flush()
    store.reads.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection = MemoryCopy(file).connect()
    assert connection.execute("SELECT status FROM node WHERE kind = 'assistant'").fetchall() == [
        (NodeStatus.STOPPED.value,)
    ]
    session.close()
    store.close()


def test_a_folder_without_permission_is_still_an_error(file, monkeypatch):
    def refuse(path, *, check):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("engine.conversations.storage.database_file.prepare", refuse)
    with pytest.raises(StoreError, match="permissions"):
        Store.open(file)
