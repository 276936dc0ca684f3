"""Merging: graft, cherry-pick, summary."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind
from tests.unit.conversations.talking import assert_saved, chat, texts


@pytest.fixture
def session(store, client):
    return TreeSession(store, client, stop_repetition=False)


def test_graft_copies_messages_after_head(session, client, store):
    _, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    other = session.head
    session.branches.fork(answer)
    chat(session, client, "three", "3")
    assert session.merging.graft(other) == 2
    assert texts(session) == ["one", "1", "three", "3", "two", "2"]
    with pytest.raises(InvalidRequest, match="open path already"):
        session.merging.graft(answer)
    ids = store.nodes.get(other).token_ids
    session.messages.send("four")
    prompt = client.requests[-1].prompt_ids
    assert any(prompt[i : i + len(ids)] == ids for i in range(len(prompt)))
    assert_saved(session, store, client)


def test_cherry_pick_copies_an_answer_beside_the_last_one(session, client):
    _, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    picked = session.head
    session.branches.fork(answer)
    chat(session, client, "three", "3")
    last = session.head
    copy = session.merging.cherry_pick(picked)
    assert texts(session) == ["one", "1", "three", "2"]
    assert session.tree.siblings(last) == [last, copy]
    assert session.view(copy).forked_from == picked


def test_a_summary_of_another_branch_precedes_the_next_message(session, client, store):
    _, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    other = session.head
    session.branches.fork(answer)
    session.merging.summarise(other)
    prompt = client.tokenizer.decode(client.requests[-1].prompt_ids)
    assert "two" in prompt and "Summarise" in prompt  # noqa: PT018
    client.write("they talked of two", eos=True)
    session.pump()
    assert session.path()[-1].kind is NodeKind.SUMMARY
    session.messages.send("three")
    prompt = client.tokenizer.decode(client.requests[-1].prompt_ids)
    assert prompt.count("they talked of two") == 1
    assert prompt.index("they talked") < prompt.index("three")
    assert session.path()[-2].text == "three"
    assert_saved(session, store, client)


@pytest.mark.parametrize("merge", ["graft", "cherry_pick", "summarise"])
def test_a_pruned_branch_cannot_be_merged(session, client, merge):
    _, answer = chat(session, client, "one", "abc")
    session.branches.regenerate()
    client.write("def", eos=True)
    session.pump()
    session.branches.prune(answer)
    with pytest.raises(InvalidRequest, match="not in this conversation any more"):
        getattr(session.merging, merge)(answer)
