import pytest

from engine.conversations.storage.store import Store
from engine.conversations.storage.stored_prompts import MAX_COMMANDS
from engine.conversations.tree import NodeKind
from tests.unit.conversations.database import node


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "c.db")
    yield store
    store.close()


def test_messages_and_commands_are_in_the_order_of_their_times(store):
    store.trees.create("t", "T")
    for at, text in ((1.0, "first"), (3.0, "third")):
        store.nodes.add([replaced(node(text, None, NodeKind.USER, text), at)], name="send")
    store.prompts.add_command("t", "/second", 2.0)
    store.prompts.add_command("unsaved", "/fourth", 4.0)
    store.writes.flush()
    assert store.prompts.latest(10) == ["first", "/second", "third", "/fourth"]
    assert store.prompts.latest(2) == ["third", "/fourth"]


def test_only_the_newest_commands_are_kept(store):
    for number in range(MAX_COMMANDS + 20):
        store.prompts.add_command("t", f"/{number}", float(number))
    store.writes.flush()
    kept = store.prompts.latest(10_000)
    assert len(kept) == MAX_COMMANDS
    assert kept[0] == "/20"


def test_commands_are_deleted_with_their_conversation(store):
    store.trees.create("t", "T")
    store.trees.create("u", "U")
    store.prompts.add_command("t", "/system secret", 1.0)
    store.prompts.add_command("u", "/system kept", 2.0)
    store.writes.run(lambda c: c.execute("UPDATE tree SET archived = 1 WHERE id = 't'"))
    assert store.trees.erase(["t"]) == 1
    assert store.prompts.latest(10) == ["/system kept"]
    assert b"secret" not in store.file.read_bytes()


def replaced(one, at):
    from dataclasses import replace

    return replace(one, tree_id="t", created_at=at)
