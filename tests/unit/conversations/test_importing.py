"""Import of exported conversations and message lists, and what hostile text does."""

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.api.errors import InvalidRequest
from engine.conversations.export import export_json, export_messages
from engine.conversations.importing import read_conversation
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind
from tests.fakes.chat_toys import ToyClient


def read(text):
    numbers = itertools.count()
    return read_conversation(text, new_id=lambda: f"{next(numbers):026d}", now=1.0)


def branched(store):
    client = ToyClient()
    session = TreeSession(store, client)
    session.system_prompt = "the rule"
    session.messages.send("question")
    client.write("first", eos=True)
    session.pump()
    session.branches.regenerate()
    client.write("second", eos=True, drafted=(1, 2))
    session.pump()
    session.branches.label(session.head, "good")
    return session, client


def shape(contents):
    """A tree without its ids."""
    place = {node.id: at for at, node in enumerate(contents.nodes)}
    nodes = [
        (
            place.get(n.parent_id),
            n.kind,
            n.text,
            n.status,
            n.token_ids,
            n.logprobs,
            n.topk,
            n.drafted,
            n.label,
        )
        for n in contents.nodes
    ]
    heads = {(one.key, place[one.value]) for one in contents.pointers if one.target == "head"}
    return contents.title, nodes, heads


def test_a_tree_survives_export_and_import_with_tokens_and_pointers(store):
    session, client = branched(store)
    before = session.contents()
    session.conversations.add(export_json(before))
    after = session.contents()
    assert after.tree_id != before.tree_id
    assert shape(after) == shape(before)
    assert [sum(node.drafted) for node in after.nodes] == [0, 0, 0, 2]
    assert [node.text for node in session.path()] == ["the rule", "question", "second"]
    store.check_integrity()
    session.messages.send("more")  # and it goes on from the stored tokens
    text = client.tokenizer.decode(client.requests[-1].prompt_ids)
    assert "second" in text
    client.write("ok", eos=True)
    session.pump()


def test_an_import_is_not_undone(store):
    session, _ = branched(store)
    session.conversations.add(export_json(session.contents()))
    imported = [node.text for node in session.path()]
    assert session.operations.undo() is None
    assert [node.text for node in session.path()] == imported
    session.branches.label(session.head, "changed")
    assert session.operations.undo() == "label"
    assert session.operations.undo() is None


def test_a_message_list_is_read(store):
    session, _ = branched(store)
    again = read(export_messages(session.path(), session.nodes.images_of))
    assert [(node.kind, node.text) for node in again.nodes] == [
        (NodeKind.SYSTEM, "the rule"), (NodeKind.USER, "question"), (NodeKind.ASSISTANT, "second"),
    ]  # fmt: skip
    assert again.title == "question"
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    assert read(json.dumps(parts)).nodes[0].text == "hi"


NODE = {"id": "a", "kind": "user", "text": "x"}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "neither"),
        ({"nodes": []}, "no messages"),
        ({"nodes": [1]}, "not an object"),
        ({"nodes": [NODE, NODE]}, "no id of its own"),
        ({"nodes": [{**NODE, "parentId": "b"}]}, "comes before"),
        ({"nodes": [{**NODE, "kind": "king"}]}, "unknown kind"),
        ({"nodes": [{**NODE, "text": 1}]}, "text of message 1"),
        ({"nodes": [{**NODE, "tokenIds": [-1]}]}, "list of tokens"),
        ({"nodes": [{**NODE, "tokenIds": [1], "logprobs": [1e300]}]}, "out of range"),
        ({"nodes": [{**NODE, "logprobs": [-1.0]}]}, "one logprob per token"),
        ({"nodes": [{**NODE, "tokenIds": [1], "acceptedDrafts": [1]}]}, "indices of its tokens"),
        ({"nodes": [{**NODE, "acceptedDrafts": [0]}]}, "indices of its tokens"),
        ({"nodes": [{**NODE, "promptTokens": 2**70}]}, "out of range"),
        ({"nodes": [{**NODE, "prunedAt": 5}]}, "pruned"),
        ({"nodes": [NODE], "pointers": [["head"]]}, "pointers"),
        ([{"role": "queen", "content": "x"}], "no role"),
        ([{"role": "user", "content": 5}], "not text"),
    ],
)
def test_each_mistake_has_a_sentence(document, why):
    with pytest.raises(InvalidRequest, match=why):
        read(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00", "nan", '"x"', "[[]]", "1" * 5000])
def test_what_is_no_conversation_is_refused(text):
    with pytest.raises(InvalidRequest, match="cannot be imported"):
        read(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
FIELDS = (
    "id", "parentId", "kind", "text", "status", "createdAt", "tokenIds", "logprobs", "topk", "sampling",
    "acceptedDrafts", "seed", "forkedFrom", "forkToken", "promptTokens", "label", "rating", "prunedAt",
    "model", "error",
)  # fmt: skip
LIKELY = st.sampled_from(
    ["a", "b", "user", "assistant", "note", "done", "streaming", [1], [-0.5], [[[1, -1]]]]
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), LIKELY | VALUES, max_size=8).map(
    lambda fields: {**NODE, **fields}
)
POINTERS = st.lists(
    st.tuples(st.sampled_from(["head", "checkout"]), LIKELY | VALUES, LIKELY), max_size=3
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {"nodes": st.lists(OBJECTS, max_size=4)}, optional={"title": VALUES, "pointers": POINTERS}
    )
    | st.lists(st.fixed_dictionaries({"role": LIKELY, "content": VALUES}), max_size=3)
    | VALUES
)
def test_any_document_is_refused_or_becomes_a_sound_conversation(store, document):
    session = TreeSession(store, ToyClient())
    try:
        session.conversations.add(json.dumps(document))
    except InvalidRequest:
        pass
    else:
        assert session.path()
    store.check_integrity()
