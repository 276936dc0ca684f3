"""Branches with a toy engine and a real store: fork, edit, expand, prune, promote."""

import itertools
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.api.errors import InvalidRequest, QueueFull
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import FinishReason, SamplingParams
from engine.conversations.branch_tree import MAIN
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.talking import assert_saved, chat, texts


@pytest.fixture
def session(store, client):
    return TreeSession(store, client, stop_repetition=False)


def test_a_fork_after_an_answer_leaves_the_first_branch_as_it_was(session, client, store):
    _, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    name = session.branches.fork(answer)
    assert texts(session) == ["one", "1"]
    chat(session, client, "three", "3")
    assert texts(session) == ["one", "1", "three", "3"]
    branches = session.tree.branches()
    assert [session.tree[branches[one]].text for one in (MAIN, name)] == ["2", "3"]
    assert_saved(session, store, client)


def test_a_fork_after_a_message_answers_it_on_a_branch_of_its_own(session, client):
    question, answer = chat(session, client, "one", "1")
    name = session.branches.fork(question)
    client.write("uno", eos=True)
    session.pump()
    assert texts(session) == ["one", "uno"]
    assert session.tree.branches()[MAIN] == answer
    assert session.tree.branch_at(session.head) == name
    assert session.tree.siblings(answer) == [answer, session.head]


def test_a_fork_at_a_token_continues_from_the_stored_ids(session, client, store):
    _, answer = chat(session, client, "one", "abba c")
    ids = store.nodes.get(answer).token_ids if store.writes.flush() is None else ()
    prompt = client.requests[0].prompt_ids
    new = session.branches.fork_at_token(answer, 2)
    request = client.requests[-1]
    assert request.prompt_ids == prompt + ids[:2]
    assert request.continued_tokens == 2
    assert session.view(new).text == "abb"  # the toy's tokenizer joins pairs of letters
    client.write("le", eos=True)
    session.pump()
    node = session.view(new)
    assert (node.text, node.forked_from, node.fork_token) == ("abble", answer, 2)
    store.writes.flush()
    stored = store.nodes.get(new)
    assert stored.token_ids[:2] == ids[:2]
    assert len(stored.logprobs) == len(stored.token_ids) == len(stored.topk)
    assert session.view(answer).text == "abba c"


def test_a_forced_token_follows_the_kept_ones(session, client):
    session.sampling.default = SamplingChoice(SamplingParams(logprobs=2))
    _, answer = chat(session, client, "one", "abc")
    tokens = session.tokens.of(answer)
    other = tokens.topk[1][1]
    new = session.branches.fork_at_token(answer, 1, forced=other.token_id)
    assert client.requests[-1].prompt_ids[-2:] == (tokens.token_ids[0], other.token_id)
    assert session.view(new).text == "ax"
    client.write("y", eos=True)
    session.pump()
    assert session.view(new).text == "axy"
    assert session.tokens.of(new).logprobs[1] == pytest.approx(other.logprob, abs=1e-3)


def test_a_fork_before_the_first_token_is_a_plain_answer(session, client):
    _, answer = chat(session, client, "one", "abc")
    session.branches.fork_at_token(answer, 0)
    assert client.requests[-1].prompt_ids == client.requests[0].prompt_ids
    assert client.requests[-1].continued_tokens == 0


def test_continuations_from_a_token_are_siblings_from_one_prefill(session, client):
    _, answer = chat(session, client, "one", "abba c")
    kept = session.tokens.of(answer).token_ids[:2]
    submitted = len(client.requests)
    ids = session.branches.expand_at_token(answer, 2, 3)
    assert session.tree.siblings(answer) == [answer, *ids]
    for request in client.requests[submitted:]:
        assert request.prompt_ids[-2:] == kept
        assert request.continued_tokens == 2
    for one in ids:
        node = session.view(one)
        assert (node.text, node.forked_from, node.fork_token) == ("abb", answer, 2)
    assert session.head == ids[0]
    session.operations.undo()
    assert session.head == answer


@pytest.mark.parametrize("count", [0, 10])
def test_too_few_or_many_continuations_are_refused(session, client, count):
    _, answer = chat(session, client, "one", "abba c")
    with pytest.raises(InvalidRequest, match="From 1 to 9"):
        session.branches.expand_at_token(answer, 2, count)


@pytest.mark.parametrize("at", [-1, 5, 99])
def test_a_fork_beyond_the_answer_is_refused(session, client, at):
    _, answer = chat(session, client, "one", "abc")
    with pytest.raises(InvalidRequest, match="4 tokens"):
        session.branches.fork_at_token(answer, at)


def test_an_edited_message_is_answered_and_the_old_one_kept(session, client, store):
    question, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    edited = session.branches.edit(question, "uno")
    client.write("I", eos=True)
    session.pump()
    assert texts(session) == ["uno", "I"]
    assert session.tree.siblings(question) == [question, edited]
    session.branches.adopt(question)
    assert texts(session) == ["one", "1", "two", "2"]
    assert session.view(answer).text == "1"
    assert_saved(session, store, client)


def test_an_edited_answer_is_not_answered(session, client):
    _, answer = chat(session, client, "one", "1")
    edited = session.branches.edit(answer, "eleven")
    assert (texts(session), session.answers.generating) == (["one", "eleven"], False)
    assert session.view(edited).status is NodeStatus.DONE
    session.messages.send("and two?")
    assert "eleven" in client.tokenizer.decode(client.requests[-1].prompt_ids)


def test_one_of_several_answers_is_stopped(session, client):
    chat(session, client, "a", "one")
    _, other = session.branches.expand(2)
    session.answers.stop(other)
    assert client.cancelled == [client.requests[-1].request_id]


def test_expand_streams_answers_side_by_side(session, client, store):
    _, answer = chat(session, client, "one", "1")
    ids = session.branches.expand(3)
    assert session.answers.running == tuple(ids)
    assert session.head == ids[0]
    assert len({one.prompt_ids for one in client.requests}) == 1
    for at, piece in enumerate("abc"):
        client.write(piece, at=at + 1)
    session.pump()
    assert [session.view(one).text for one in ids] == ["a", "b", "c"]
    for at in range(3):
        client.write("!", eos=True, at=at + 1)
    session.pump()
    assert session.answers.running == ()
    assert session.tree.siblings(answer) == [answer, *ids]
    session.branches.adopt(ids[2])
    assert texts(session) == ["one", "c!"]
    assert_saved(session, store, client)


def test_going_on_from_another_answer_begins_a_named_branch(session, client):
    _, answer = chat(session, client, "one", "1")
    ids = session.branches.expand(2)
    for at in (1, 2):
        client.write("!", eos=True, at=at)
    session.pump()
    session.branches.adopt(ids[1])
    _, last = chat(session, client, "two", "2")
    assert session.tree.branches() == {MAIN: ids[0], "fork": last}
    assert session.tree.branch_at(answer) is None


def test_expansions_with_a_chosen_seed_differ(store, client):
    sampling = SamplingChoice(SamplingParams(seed=7))
    session = TreeSession(store, client, sampling=sampling)
    chat(session, client, "one", "1")
    session.branches.regenerate()
    assert client.requests[-1].sampling.seed == 8


def test_a_refused_expansion_adds_nothing(session, client):
    chat(session, client, "one", "1")
    size = len(session.tree)
    client.refuse = QueueFull("full")
    with pytest.raises(QueueFull):
        session.branches.expand(2)
    assert (len(session.tree), session.answers.running) == (size, ())
    with pytest.raises(InvalidRequest, match="1 to 9"):
        session.branches.expand(10)


def test_other_branches_can_be_read_and_continued_while_an_answer_runs(session, client, store):
    _, answer = chat(session, client, "one", "1")
    session.messages.send("two")
    running = session.head
    session.branches.rewind(answer)
    assert (texts(session), session.answers.generating) == (["one", "1"], False)
    session.messages.send("three")
    client.write("slow", at=1)
    client.write("quick", eos=True, at=2)
    session.pump()
    assert texts(session) == ["one", "1", "three", "quick"]
    assert session.answers.running == (running,)
    client.write(" one", eos=True, at=1)
    session.pump()
    session.branches.adopt(running)
    assert texts(session)[-2:] == ["two", "slow one"]
    assert_saved(session, store, client)


def test_a_queued_message_follows_the_answer_that_it_was_queued_at(session, client):
    _, answer = chat(session, client, "one", "1")
    session.messages.send("two")
    session.messages.send("later")
    assert session.messages.queued == ("later",)
    session.branches.rewind(answer)
    assert session.messages.queued == ()
    client.write("2", eos=True)
    session.pump()
    assert texts(session) == ["one", "1"]
    client.write("3", eos=True)
    session.pump()
    session.branches.adopt(answer)
    assert texts(session) == ["one", "1", "two", "2", "later", "3"]


def test_prune_hides_a_branch_and_undo_brings_it_back(session, client, store):
    question, answer = chat(session, client, "one", "1")
    second, _ = chat(session, client, "two", "2")
    session.branches.regenerate(question)
    client.write("uno", eos=True)
    session.pump()
    session.branches.adopt(answer)
    assert session.branches.prune(answer) == 3
    assert texts(session) == ["one", "uno"]
    assert second not in session.tree.path(session.head)
    assert_saved(session, store, client)
    assert session.operations.undo() == "prune"
    assert texts(session) == ["one", "1", "two", "2"]
    assert session.operations.redo() == "prune"
    assert texts(session) == ["one", "uno"]
    assert_saved(session, store, client)


def test_pruning_stops_answers_below(session, client):
    _, answer = chat(session, client, "one", "1")
    session.messages.send("two")
    question = session.path()[-2].id
    session.branches.prune(question)
    assert client.cancelled == [client.requests[-1].request_id]
    client.write("", finish=FinishReason.ABORT)
    session.pump()
    assert (session.answers.running, session.head) == ((), answer)
    with pytest.raises(InvalidRequest, match="whole conversation"):
        session.branches.prune(session.path()[0].id)


def test_promote_names_the_branch_main(session, client, store):
    _, answer = chat(session, client, "one", "1")
    chat(session, client, "two", "2")
    first = session.head
    session.branches.fork(answer)
    chat(session, client, "three", "3")
    session.branches.adopt(first)
    leaf = session.tree.branches()["fork"]
    session.branches.promote(leaf)
    assert session.tree.branches() == {"old-main": first, MAIN: leaf}
    assert session.tree.leaf(answer) == leaf == session.head
    session.operations.undo()
    assert session.tree.branches() == {"fork": leaf, MAIN: first}
    assert session.head == first
    assert_saved(session, store, client)


OPERATIONS = (
    "send", "regenerate", "expand", "fork", "fork_token", "edit", "prune", "promote", "adopt",
    "rewind", "graft", "pick", "label", "undo", "redo", "finish",
)  # fmt: skip


_stores = itertools.count()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 30)), max_size=30))
def test_memory_and_store_agree_after_any_operations(tmp_path: Path, steps):
    client = ToyClient()
    store = Store.open(tmp_path / f"{next(_stores)}.db")
    session = TreeSession(store, client, stop_repetition=False)
    try:
        chat(session, client, "one", "abc")
        store.writes.flush()
        for operation, number in steps:
            nodes = [node.id for node in store.nodes.of_tree(session.tree_id)]
            node = nodes[number % len(nodes)]
            try:
                _run(session, client, operation, node, number)
            except InvalidRequest:
                pass
            store.writes.flush()
        for at in range(len(client.requests)):
            client.write(".", eos=True, at=at)
        session.pump()
        assert_saved(session, store, client)
        store.check_integrity()
        path = session.path()
        assert all(one.pruned_at is None for one in path)
        assert [one.parent_id for one in path[1:]] == [one.id for one in path[:-1]]
        while session.operations.undo():
            pass
        assert session.path() == []
        while session.operations.redo():
            pass
        assert_saved(session, store, client)
    finally:
        store.close()


def _run(session, client, operation, node, number):
    branches = session.branches
    match operation:
        case "send":
            session.messages.send(f"message {number}")
        case "regenerate":
            branches.regenerate(node)
        case "expand":
            branches.expand(2, node)
        case "fork":
            branches.fork(node)
        case "fork_token":
            branches.fork_at_token(node, number % 4)
        case "edit":
            branches.edit(node, f"edited {number}")
        case "prune":
            branches.prune(node)
        case "promote":
            branches.promote(node)
        case "adopt":
            branches.adopt(node)
        case "rewind":
            branches.rewind(node)
        case "graft":
            session.merging.graft(node)
        case "pick":
            session.merging.cherry_pick(node)
        case "label":
            branches.label(node, f"label {number}")
        case "undo":
            session.operations.undo()
        case "redo":
            session.operations.redo()
        case "finish":
            client.write("x", eos=True, at=number % len(client.requests))
            session.pump()


def test_a_pruned_message_is_not_answered_again(session, client):
    question, answer = chat(session, client, "one", "1")
    session.branches.edit(question, "two")
    session.branches.prune(question)
    for again in (session.branches.regenerate, partial(session.branches.expand, 2)):
        for node in (question, answer):
            with pytest.raises(InvalidRequest, match="not in this conversation any more"):
                again(node_id=node)


def test_the_open_path_shows_labels_and_bookmarks_as_they_are(session, client):
    question, answer = chat(session, client, "one", "1")
    session.branches.label(question, "idea")
    session.branches.rate(answer, 1)
    assert [(view.label, view.rating) for view in session.path()] == [("idea", None), (None, 1)]
    session.branches.label(question, "")
    assert session.path()[0].label is None


def test_an_answer_of_another_branch_can_be_stopped(session, client):
    _, answer = chat(session, client, "one", "1")
    running = session.branches.regenerate()
    session.branches.adopt(answer)
    assert not session.answers.generating
    session.answers.stop(running)
    assert client.cancelled == [client.requests[-1].request_id]


def test_a_conversation_is_branched_while_a_message_has_siblings_that_are_not_pruned(
    session, client
):
    chat(session, client, "one", "1")
    assert not session.tree.branched
    again = session.branches.regenerate()
    assert session.tree.branched
    session.branches.prune(again)
    assert not session.tree.branched


def test_regenerate_adds_a_sibling_with_the_next_seed(session, client, store):
    session.sampling.change({"seed": 7})
    session.messages.send("hello")
    client.write("a", eos=True)
    session.pump()
    first = session.path()[-1].id
    session.branches.regenerate()
    assert client.requests[1].prompt_ids == client.requests[0].prompt_ids
    assert client.requests[1].sampling.seed == 8
    client.write("b", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["hello", "b"]
    store.writes.flush()
    second = session.path()[-1].id
    assert store.nodes.get(second).parent_id == store.nodes.get(first).parent_id
    assert session.operations.undo() == "regenerate"
    assert [view.text for view in session.path()] == ["hello", "a"]
    assert session.operations.redo() == "regenerate"
    assert [view.text for view in session.path()] == ["hello", "b"]


def test_regenerate_is_refused_without_an_answer_and_during_one(session, client):
    with pytest.raises(InvalidRequest, match="Nothing to regenerate"):
        session.branches.regenerate()
    session.messages.send("hello")
    with pytest.raises(InvalidRequest, match="stop it first"):
        session.branches.regenerate()
