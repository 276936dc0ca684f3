"""The conversation database: permissions, versions, damage, immutability, leases."""

import sqlite3
import stat
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from importlib.resources import files

import pytest

from engine.api.request import TopLogprob
from engine.conversations import lease
from engine.conversations.blobs import (
    pack_flags,
    pack_ids,
    pack_logprobs,
    pack_top,
    unpack_flags,
    unpack_ids,
    unpack_logprobs,
    unpack_top,
)
from engine.conversations.errors import StoreError
from engine.conversations.export import export_jsonl
from engine.conversations.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus
from engine.conversations.ulid import UlidFactory


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(file):
    store = Store.open(file)
    store.trees.create("t", "A tree")
    yield store
    store.close()


def node(name, parent=None, kind=NodeKind.USER, text="", status=NodeStatus.DONE):
    return Node(name, "t", parent, kind, text, status, 1.0)


def execute(file, statement, *parameters):
    connection = sqlite3.connect(file)
    try:
        with connection:
            return connection.execute(statement, parameters).fetchall()
    finally:
        connection.close()


def test_only_the_user_may_read_the_files(store, file):
    store.writes.flush()
    for path in [file, *file.parent.glob("conversations.db-*")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_database_is_in_wal_mode(store, file):
    assert execute(file, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize(
    "change",
    [
        "text = 'other'",
        "parent_id = NULL",
        "kind = 'note'",
        "status = 'streaming'",
        "token_ids = x'01000000'",
        "token_ids = NULL",
        "logprobs = x'0000'",
        "tree_id = 'u'",
        "id = 'x'",
        "created_at = 5.0",
    ],
)
def test_a_finished_node_is_immutable(store, file, change):
    answer = replace(
        node("b", "a", NodeKind.ASSISTANT, "hi"), token_ids=(7,), logprobs=(-0.5,), tokenizer="f"
    )
    store.nodes.add([node("a", text="hello"), answer], name="send")
    store.writes.flush()
    with pytest.raises(sqlite3.IntegrityError, match=r"immutable|never change"):
        execute(file, f"UPDATE node SET {change} WHERE id = 'b'")


def test_flags_of_a_finished_node_may_change(store, file):
    store.nodes.add([node("a")], name="send")
    store.writes.flush()
    execute(file, "UPDATE node SET label = 'x', rating = 1, pruned_at = 2.0 WHERE id = 'a'")
    assert store.nodes.get("a").label == "x"


def test_the_text_of_a_streaming_node_may_change_but_not_its_parent(store, file):
    store.nodes.add(
        [node("a"), node("b", "a", NodeKind.ASSISTANT, status=NodeStatus.STREAMING)], name="send"
    )
    store.writes.flush()
    execute(file, "UPDATE node SET text = 'more' WHERE id = 'b'")
    with pytest.raises(sqlite3.IntegrityError, match="never change"):
        execute(file, "UPDATE node SET parent_id = NULL WHERE id = 'b'")


def test_a_users_ids_are_set_once_for_each_tokenizer(store):
    store.nodes.add([node("a", text="hi")], name="send")
    first = replace(node("a"), token_ids=(1, 2), tokenizer="f", template="d")
    store.nodes.set_token_ids(first)
    store.writes.flush()
    store.nodes.set_token_ids(replace(first, token_ids=(3,)))
    with pytest.raises(StoreError, match="immutable"):
        store.writes.flush()
    store.nodes.set_token_ids(replace(first, token_ids=(3,), tokenizer="g"))
    store.writes.flush()
    assert store.nodes.get("a").token_ids == (3,)


def test_a_failed_write_does_not_affect_others(store):
    store.nodes.add([node("a")], name="send")
    store.nodes.add([node("a")], name="send")
    store.nodes.add([node("c", "a")], name="send")
    with pytest.raises(StoreError, match="could not be saved"):
        store.writes.flush()
    assert store.nodes.get("c") is not None
    assert store.trees.head("t") == "c"
    store.writes.flush()


def test_a_finished_node_cannot_be_updated(store):
    store.nodes.add([node("a", kind=NodeKind.ASSISTANT, status=NodeStatus.STREAMING)], name="s")
    done = node("a", kind=NodeKind.ASSISTANT, text="done")
    store.nodes.update_streaming(done)
    store.nodes.update_streaming(replace(done, text="late"))
    store.writes.wait()
    assert "finished" in store.writes.take_notice()
    assert store.writes.take_notice() is None
    assert store.nodes.get("a").text == "done"


OLD_NODE = (
    "INSERT INTO node (id, tree_id, kind, text, token_ids, logprobs, status, created_at) "
    "VALUES ('a', 't', 'assistant', 'hi', x'07000000', x'00b8', 'done', 1.0)"
)


@pytest.mark.parametrize(
    "scripts",
    [
        ("schema.sql",),
        ("schema.sql", "schema_2.sql"),
        ("schema.sql", "schema_2.sql", "schema_3.sql"),
        ("schema.sql", "schema_2.sql", "schema_3.sql", "schema_4.sql"),
    ],
)
def test_a_database_of_an_older_version_is_migrated_with_its_messages(file, scripts):
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        for script in scripts:
            connection.executescript(files("engine.conversations").joinpath(script).read_text())
        connection.execute(
            "INSERT INTO tree (id, title, created_at, updated_at) VALUES ('t', 'T', 1, 1)"
        )
        connection.execute(OLD_NODE)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.commit()
    store = Store.open(file)
    old = store.nodes.get("a")
    assert (old.text, old.token_ids, old.logprobs, old.drafted) == ("hi", (7,), (-0.5,), ())
    new = replace(
        node("b", "a", NodeKind.ASSISTANT, "yo"), token_ids=(1, 2, 3), drafted=(False, True, True)
    )
    store.nodes.add([new], name="send")
    store.writes.flush()
    assert store.nodes.get("b").drafted == (False, True, True)
    assert [one.id for one in store.searches.trees("hi")] == ["t"]
    store.check_integrity()
    store.close()
    assert execute(file, "PRAGMA user_version") == [(5,)]


def test_a_database_of_a_newer_version_is_refused_unchanged(file):
    Store.open(file).close()
    execute(file, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer Pravāha"):
        Store.open(file)
    assert execute(file, "PRAGMA user_version") == [(99,)]


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


def test_the_export_has_a_line_for_every_node(store):
    import json

    answer = replace(
        node("b", "a", NodeKind.ASSISTANT, "hí"), token_ids=(7, 8), logprobs=(-0.5, -1.5), seed=3
    )
    store.nodes.add([node("a", text="hello"), answer], name="send")
    store.writes.flush()
    first, second = map(json.loads, export_jsonl(store, "t"))
    assert (first["id"], first["parentId"], first["text"]) == ("a", None, "hello")
    assert second["parentId"] == "a"
    assert second["tokenIds"] == [7, 8]
    assert second["logprobs"] == [-0.5, -1.5]
    assert "error" not in second


def test_a_dead_lease_is_removed_and_a_live_one_kept(tmp_path):
    held = lease.WriterLease(tmp_path)
    (tmp_path / "DEAD").touch()
    assert lease.is_alive(tmp_path, held.id)
    assert lease.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [held.id]
    assert not lease.sweep(tmp_path)
    held.release()
    held.release()
    assert not lease.is_alive(tmp_path, held.id)


KILLED = """
    import os, signal, sys
    from engine.conversations.session import TreeSession
    from engine.conversations.store import Store
    from tests.fakes.chat_toys import ToyClient

    class Clock:
        now = 0.0
        def __call__(self):
            return self.now

    clock, client, store = Clock(), ToyClient(), Store.open(__import__("pathlib").Path(sys.argv[1]))
    session = TreeSession(store, client, clock=clock)
    session.messages.send("first")
    client.write("whole", eos=True)
    session.pump()
    session.messages.send("second")
    client.write("half an ")
    clock.now = 1.0
    session.pump()
    store.writes.flush()
    print("saved", flush=True)
    sys.stdin.readline()
"""


def test_saved_text_of_a_killed_process_is_kept(file):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "saved\n"
        # A live process keeps its streaming answer.
        beside = Store.open(file)
        (tree,) = beside.searches.trees()
        assert (
            beside.nodes.path(beside.trees.head(tree.id))[-1].status
            is NodeStatus.STREAMING
        )
        beside.close()
    finally:
        child.kill()
        child.communicate()
    store = Store.open(file)
    assert store.writes.take_notice() is None
    path = store.nodes.path(store.trees.head(tree.id))
    assert [(n.text, n.status.value) for n in path] == [
        ("first", "done"),
        ("whole", "done"),
        ("second", "done"),
        ("half an ", "stopped"),
    ]
    assert path[3].token_ids is not None
    assert len(path[3].logprobs) == len(path[3].token_ids)
    assert [t.id for t in store.searches.trees("half an")] == [tree.id]
    store.check_integrity()
    store.close()


def test_blobs_round_trip_with_the_stated_precision():
    ids = (0, 1, 2**32 - 1)
    assert unpack_ids(pack_ids(ids)) == ids
    assert len(pack_ids(ids)) == 12
    assert unpack_logprobs(pack_logprobs([0.0, -0.5, float("-inf"), -1e9])) == (
        0.0,
        -0.5,
        -65504.0,
        -65504.0,
    )
    top = ((TopLogprob(5, -0.25), TopLogprob(6, -3.0)), ())
    assert unpack_top(pack_top(top)) == top
    flags = (True, False, False, True, False, False, False, False, True)
    assert unpack_flags(pack_flags(flags), 9) == flags
    assert len(pack_flags(flags)) == 2


def test_ulids_increase_when_the_clock_does_not():
    times = iter([1.0, 1.0, 0.5, 2.0])
    factory = UlidFactory(clock=lambda: next(times), random_bits=lambda _: 2**80 - 1)
    made = [factory() for _ in range(4)]
    assert made == sorted(made)
    assert len(set(made)) == 4
    assert all(len(one) == 26 for one in made)
