"""Nodes in the database: immutable once they finished."""

import sqlite3
from dataclasses import replace

import pytest

from engine.conversations.errors import StoreError
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeKind, NodeStatus
from tests.unit.conversations.database import execute, node


@pytest.fixture
def store(file):
    store = Store.open(file)
    store.trees.create("t", "A tree")
    yield store
    store.close()


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


def test_a_finished_node_cannot_be_updated(store):
    store.nodes.add([node("a", kind=NodeKind.ASSISTANT, status=NodeStatus.STREAMING)], name="s")
    done = node("a", kind=NodeKind.ASSISTANT, text="done")
    store.nodes.update_streaming(done)
    store.nodes.update_streaming(replace(done, text="late"))
    store.writes.wait()
    assert "finished" in store.writes.take_notice()
    assert store.writes.take_notice() is None
    assert store.nodes.get("a").text == "done"
