"""Databases of other versions."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.resources import files

import pytest

from engine.conversations.assignment import Assignment
from engine.conversations.errors import StoreError
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeKind
from tests.unit.conversations.database import execute, node

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
        ("schema.sql", "schema_2.sql", "schema_3.sql", "schema_4.sql", "schema_5.sql"),
        (
            "schema.sql",
            "schema_2.sql",
            "schema_3.sql",
            "schema_4.sql",
            "schema_5.sql",
            "schema_6.sql",
            "schema_7.sql",
        ),
    ],
)
def test_a_database_of_an_older_version_is_migrated_with_its_messages(file, scripts):
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        for script in scripts:
            connection.executescript(
                files("engine.conversations.storage").joinpath(script).read_text()
            )
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
    store.operations.assign("t", "choose a model", [Assignment("model", "b", "other")])
    store.writes.flush()
    assert store.trees.branch_tree("t").chosen_model("b") == "other"
    assert [one.id for one in store.searches.trees("hi")] == ["t"]
    store.check_integrity()
    store.close()
    assert execute(file, "PRAGMA user_version") == [(8,)]


def test_a_database_of_a_newer_version_is_refused_unchanged(file):
    Store.open(file).close()
    execute(file, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer Pravāha"):
        Store.open(file)
    assert execute(file, "PRAGMA user_version") == [(99,)]
