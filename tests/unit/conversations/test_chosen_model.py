"""Branches of one conversation that several models answer: the choice, what follows it, what is kept."""

import json

import jinja2
import pytest

from engine.api.errors import EngineUnavailable, ModelNotFound
from engine.api.snapshot import EngineState
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations.export import export_json
from engine.conversations.importing import read_conversation
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import REWRITING, ToyTokenizer
from tests.fakes.toy_model_set import NamedClient, ToyModelSet
from tests.unit.conversations.database import execute


@pytest.fixture
def big():
    return NamedClient("big")


@pytest.fixture
def small():
    return NamedClient("small")


@pytest.fixture
def models(big, small):
    return ToyModelSet(big, small)


def open_session(store, models):
    client = SeveralModelsClient(models)
    session = TreeSession(store, as_client(client), models=models)
    client.follow(lambda: session.model.current)
    return session


@pytest.fixture
def session(store, models):
    return open_session(store, models)


def answer(session, client, text):
    """Give the next answer by this client and take it."""
    client.answers.append(text)
    pending = [one for one in client.requests if one.request_id in client._running]
    if pending:
        client._running[pending[-1].request_id].pieces.extend([text])
        client.answers.clear()
    client.finish()
    session.pump()


def chat(session, client, question, text):
    session.messages.send(question)
    answer(session, client, text)
    return session.head


def models_of(session):
    return [node.model for node in session.path() if node.model is not None]


def test_a_branch_is_answered_by_the_primary_model_until_one_is_chosen(session, big, small):
    chat(session, big, "one", "first")
    assert session.model.current == "big"
    assert session.model.choose("small")
    assert not session.model.choose("small")
    chat(session, small, "two", "second")
    assert models_of(session) == ["big", "small"]
    assert session.model.current == "small"


def test_a_choice_in_an_empty_conversation_is_for_its_first_answer(session, small, store, models):
    session.model.choose("small")
    chat(session, small, "one", "first")
    assert models_of(session) == ["small"]
    store.writes.flush()
    assert open_session(store, models).model.current == "small"


def test_a_choice_is_kept_in_the_database_before_anything_is_sent(session, big, store, models):
    chat(session, big, "one", "first")
    session.model.choose("small")
    store.writes.flush()
    assert open_session(store, models).model.current == "small"


def test_a_choice_can_be_undone(session, big):
    chat(session, big, "one", "first")
    session.model.choose("small")
    assert session.operations.undo() == "choose a model"
    assert session.model.current == "big"
    assert session.operations.redo() == "choose a model"
    assert session.model.current == "small"


def test_each_branch_goes_on_with_its_own_model(session, big, small):
    first = chat(session, big, "one", "first")
    session.branches.regenerate(first, model="small")
    answer(session, small, "other")
    second = session.head
    assert session.model.current == "small"
    session.branches.adopt(first)
    assert session.model.current == "big"
    chat(session, big, "more", "by big")
    session.branches.adopt(second)
    chat(session, small, "more", "by small")
    assert models_of(session) == ["small", "small"]
    assert {session.tree[one].model for one in session.tree.siblings(first)} == {"big", "small"}


def test_an_answer_is_given_again_by_its_own_model(session, big, small):
    first = chat(session, big, "one", "first")
    session.branches.regenerate(first, model="small")
    answer(session, small, "other")
    session.branches.regenerate()
    answer(session, small, "again")
    assert [session.tree[one].model for one in session.tree.siblings(first)] == [
        "big", "small", "small",
    ]  # fmt: skip


def test_the_last_answer_is_given_again_by_the_model_that_was_chosen_after_it(session, big, small):
    chat(session, big, "one", "first")
    session.model.choose("small")
    session.branches.regenerate()
    answer(session, small, "other")
    assert models_of(session) == ["small"]


def test_a_fork_may_have_another_model(session, big, small):
    first = chat(session, big, "one", "first")
    last = chat(session, big, "two", "second")
    name = session.branches.fork(first, model="small")
    chat(session, small, "else", "third")
    assert models_of(session) == ["big", "small"]
    assert session.tree.branches()[name] == session.head
    session.branches.adopt(last)
    assert session.model.current == "big"


def test_a_fork_of_a_message_is_answered_by_the_model_at_once(session, big, small):
    chat(session, big, "one", "first")
    question = session.path()[-2].id
    session.branches.fork(question, model="small")
    answer(session, small, "other")
    assert models_of(session) == ["small"]


def test_the_history_is_rendered_by_the_other_models_template_from_its_text(store, big):
    rewriting = NamedClient("other")
    rewriting._template = jinja2.Environment().from_string(REWRITING)
    models = ToyModelSet(big, rewriting)
    session = open_session(store, models)
    chat(session, big, "one", "thought</think>said")
    session.model.choose("other")
    session.messages.send("two")
    request = rewriting.requests[-1]
    text = rewriting.detokenize(request.prompt_ids, skip_special=False)
    assert "<|im_start|>assistant\nsaid<|im_end|>" in text
    assert "thought" not in text


def test_models_with_one_tokenizer_share_the_ids_of_an_answer(store):
    tokens = ToyTokenizer("shared")
    big = NamedClient("big", tokenizer=tokens)
    small = NamedClient("small", tokenizer=tokens)
    session = open_session(store, ToyModelSet(big, small))
    chat(session, big, "one", "book")
    ids = store_ids(session)
    session.model.choose("small")
    session.messages.send("two")
    prompt = small.requests[-1].prompt_ids
    assert any(prompt[at : at + len(ids)] == ids for at in range(len(prompt)))


def store_ids(session):
    return session.nodes.full(session.head).token_ids[:-1]


def test_an_answer_waits_for_its_model_which_is_loaded_for_it(session, small, models):
    small.state = EngineState.UNLOADED
    session.model.choose("small")
    session.messages.send("one")
    assert models.changes == [("load", "small")]
    assert not small.requests
    small.load(1.0)
    session.pump()
    answer(session, small, "late")
    assert session.path()[-1].text == "late"


def test_a_message_whose_model_cannot_be_loaded_fails_with_the_reason(session, small, models):
    small.state = EngineState.UNLOADED
    session.model.choose("small")
    session.messages.send("one")
    models.failing["small"] = "small is damaged."
    session.pump()
    assert session.path()[-1].status is NodeStatus.ERROR
    assert session.path()[-1].error == "small is damaged."


def test_a_message_whose_model_is_known_to_fail_is_refused(session, small, models):
    small.state = EngineState.UNLOADED
    models.failing["small"] = "small is damaged."
    models.changes.append(("load", "small"))
    session.model.choose("small")
    with pytest.raises(EngineUnavailable, match="damaged"):
        session.messages.send("one")
    assert session.path() == []


def test_answers_of_other_branches_go_on_with_their_models(session, big, small):
    first = chat(session, big, "one", "first")
    session.messages.send("two")
    session.branches.adopt(first)
    session.branches.rewind(first)
    session.model.choose("small")
    session.messages.send("three")
    assert (len(big._running), len(small._running)) == (1, 1)
    answer(session, big, "by big")
    answer(session, small, "by small")
    texts = {session.tree[one].text: session.tree[one].model for one in session.tree.leaves()}
    assert texts == {"by big": "big", "by small": "small"}


def test_a_model_that_is_not_there_leaves_the_branch_to_the_primary_one(session, big, store):
    chat(session, big, "one", "first")
    store.writes.flush()
    other = open_session(store, ToyModelSet(NamedClient("third")))
    assert other.model.current == "third"
    with pytest.raises(ModelNotFound):
        other.model.choose("big")


def test_tokens_of_an_answer_are_those_of_its_model(session, big, small):
    first = chat(session, big, "one", "aa")
    session.branches.regenerate(first, model="small")
    answer(session, small, "other")
    assert session.tokens.of(first).texts[0] == "aa"  # while the other model is followed


def test_a_fork_at_a_token_is_by_the_model_of_the_tokens(session, big, small):
    first = chat(session, big, "one", "abc")
    session.branches.regenerate(first, model="small")
    answer(session, small, "xyz")
    second = session.head
    session.branches.adopt(first)
    session.branches.fork_at_token(second, 1)
    assert len(small._running) == 1
    assert not big._running


def test_tokens_stay_with_the_model_of_their_answer_when_another_is_chosen(session, big, small):
    first = chat(session, big, "one", "abc")
    session.model.choose("small")
    assert "".join(session.tokens.of(first).texts) == "abc"
    small.tokenizer.decode = lambda ids, skip_special=True: "?"
    assert session.tokens.texts_of(first, [1000 + ord("z")]) == ["z"]
    session.tokens.next_tokens(first, 1)
    assert big.requests[-1].sampling.max_tokens == 1
    session.branches.fork_at_token(first, 1)
    assert small.requests == []
    answer(session, big, "xy")
    assert session.path()[-1].text == "axy"
    assert session.model.current == "big"


def test_a_fork_at_a_token_is_by_its_model_also_where_the_other_has_the_same_tokens(store):
    tokens = ToyTokenizer("shared")
    big, small = (NamedClient(name, tokenizer=tokens) for name in ("big", "small"))
    session = open_session(store, ToyModelSet(big, small))
    first = chat(session, big, "one", "abc")
    session.model.choose("small")
    session.branches.fork_at_token(first, 1)
    assert (len(big._running), len(small._running)) == (1, 0)


def test_what_goes_on_with_another_model_reads_the_answer_as_text(session, big, small):
    small.tokenizer.encode = lambda text, special=False: [2000 + ord(one) for one in text]
    first = chat(session, big, "one", "abc")
    ids = session.nodes.full(first).token_ids
    assert session.tokens.prompt_ids(first)[-len(ids) :] == ids
    session.model.choose("small")
    prompt = session.tokens.prompt_ids(first)
    assert all(one >= 2000 for one in prompt)
    assert "abc" in "".join(chr(one - 2000) for one in prompt)
    session.tokens.warm(first)
    assert small.requests[-1].prompt_ids == prompt


def test_the_choice_survives_export_and_import(session, big, store, models):
    chat(session, big, "one", "first")
    session.model.choose("small")
    text = export_json(session.contents())
    numbers = iter(range(100))
    contents = read_conversation(text, new_id=lambda: f"new-{next(numbers):03d}", now=1.0)
    store.trees.restore(contents)
    store.writes.flush()
    other = open_session(store, models)
    other.conversations.open(contents.tree_id)
    assert other.model.current == "small"
    assert [node.model for node in other.path() if node.model] == ["big"]


@pytest.mark.parametrize("key", ["nowhere", 7])
def test_an_imported_choice_at_no_message_is_dropped_or_refused(session, big, key):
    chat(session, big, "one", "first")
    document = json.loads(export_json(session.contents()))
    document["pointers"].append(["model", str(key), "small"])
    numbers = iter(range(100))
    contents = read_conversation(
        json.dumps(document), new_id=lambda: f"new-{next(numbers):03d}", now=1.0
    )
    assert not [one for one in contents.pointers if one.target == "model"]


def test_erasing_a_conversation_erases_its_choices(session, big, store, tmp_path):
    chat(session, big, "one", "first")
    session.model.choose("small")
    tree_id = session.tree_id
    store.writes.flush()
    rows = "SELECT name FROM chosen_model"
    assert execute(tmp_path / "conversations.db", rows) == [("small",)]
    session.conversations.archive(tree_id)
    assert store.trees.erase([tree_id]) == 1
    assert execute(tmp_path / "conversations.db", rows) == []
