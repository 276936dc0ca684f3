"""The export of a conversation as JSON Lines."""

import json
from dataclasses import replace

import pytest

from engine.conversations.export import export_jsonl
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeKind
from tests.unit.conversations.database import node


@pytest.fixture
def store(file):
    store = Store.open(file)
    store.trees.create("t", "A tree")
    yield store
    store.close()


def test_the_export_has_a_line_for_every_node(store):
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
