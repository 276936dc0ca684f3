"""`TreeSession` with a toy engine and a real store."""

import json
import sqlite3
import time

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.request import FinishReason, SamplingParams
from engine.api.snapshot import EngineState
from engine.conversations import database_connection
from engine.conversations.errors import ConversationChanged, StoreError
from engine.conversations.session import TreeSession
from engine.conversations.store import Store
from engine.conversations.tree import NodeKind, NodeStatus
from tests.fakes.chat_toys import ALTERNATING, EOS, ToyClient
from tests.fakes.full_disk import full_disk


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def session(store, client, clock):
    return TreeSession(store, client, clock=clock)


def shape(session):
    return [(view.kind.value, view.text, view.status.value) for view in session.path()]


def test_an_answer_streams_into_the_path(session, client):
    session.messages.send("hello")
    assert session.answers.generating
    client.write("hi")
    assert [(d.text, d.status) for d in session.pump()] == [("hi", NodeStatus.STREAMING)]
    client.write(" there", eos=True)
    (delta,) = session.pump()
    assert (delta.text, delta.status, delta.finish) == (" there", NodeStatus.DONE, "stop")
    assert not session.answers.generating
    assert shape(session) == [("user", "hello", "done"), ("assistant", "hi there", "done")]


@pytest.mark.parametrize(("limit", "finish"), [(2, "length"), (3, "context_full")])
def test_an_answer_that_ends_before_its_own_limit_filled_the_context(
    store, client, clock, limit, finish
):
    sampling = SamplingChoice(SamplingParams(max_tokens=limit))
    session = TreeSession(store, client, clock=clock, sampling=sampling)
    session.messages.send("hello")
    client.write("ab", finish=FinishReason.LENGTH)
    (delta,) = session.pump()
    assert (delta.status, delta.finish) == (NodeStatus.DONE, finish)


def test_an_answer_that_repeats_itself_is_stopped_and_kept(session, client, store):
    session.messages.send("hello")
    client.write("begin ")
    session.pump()
    assert client.cancelled == []
    client.write("again " * 60)
    session.pump()
    session.pump()
    assert client.cancelled == [client.requests[-1].request_id]
    client.write("again ", finish=FinishReason.ABORT)
    (delta,) = session.pump()
    assert (delta.status, delta.finish) == (NodeStatus.STOPPED, "repetition")
    store.writes.flush()
    assert store.nodes.get(store.trees.head(session.tree_id)).finish == "repetition"


@pytest.mark.parametrize(
    ("parameters", "given", "limit"),
    [(135_000_000, None, 1024), (7_000_000_000, None, None), (135_000_000, 5000, 5000)],
)
def test_answers_of_small_models_have_a_limit_by_default(
    store, client, clock, parameters, given, limit
):
    client.parameters = parameters
    sampling = SamplingChoice(SamplingParams(max_tokens=given))
    session = TreeSession(store, client, clock=clock, sampling=sampling)
    session.messages.send("hello")
    assert client.requests[-1].sampling.max_tokens == limit
    store.writes.flush()
    stored = json.loads(store.nodes.get(store.trees.head(session.tree_id)).sampling)
    assert stored["max_tokens"] == limit  # what was used, not what was asked for


@pytest.mark.parametrize("loading", [False, True])
def test_answers_use_the_models_defaults_where_nothing_is_chosen(store, client, clock, loading):
    client.generation_defaults = GenerationDefaults(temperature=0.9, top_k=5, dry_multiplier=0.5)
    client.state = EngineState.LOADING if loading else EngineState.READY
    chosen = SamplingChoice(SamplingParams(temperature=0.4, top_p=0.8), frozenset({"temperature"}))
    session = TreeSession(store, client, clock=clock, sampling=chosen)
    session.messages.send("hello")
    session.pump()
    client.state = EngineState.READY
    session.pump()
    (request,) = client.requests
    used = request.sampling
    assert (used.temperature, used.top_k, used.top_p, used.dry_multiplier) == (0.4, 5, 0.8, 0.5)
    client.write("a", eos=True)
    session.pump()
    store.writes.flush()
    stored = json.loads(store.nodes.get(store.trees.head(session.tree_id)).sampling)
    assert (stored["temperature"], stored["top_k"], stored["dry_multiplier"]) == (0.4, 5, 0.5)


def test_repetition_may_be_allowed(store, client, clock):
    session = TreeSession(store, client, clock=clock, stop_repetition=False)
    session.messages.send("hello")
    client.write("again " * 60)
    session.pump()
    assert client.cancelled == []


def test_pump_without_new_output_returns_nothing(session, client):
    assert session.pump() == []
    session.messages.send("hello")
    assert session.pump() == []


def test_a_finished_answer_is_saved_with_its_timings(session, client, store):
    session.messages.send("hello")
    ids = client.write("abba", eos=True, cached=7)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert node.token_ids == ids
    assert node.n_cached == 7
    assert ids[-1] == EOS
    assert node.logprobs == (-0.5,) * len(ids)
    assert (node.n_prompt, node.n_gen) == (len(client.requests[0].prompt_ids), len(ids))
    assert (node.ttft_us, node.decode_us) == (500_000, 1_000_000)
    assert (node.model, node.tokenizer) == ("toy", "toy-1")
    assert json.loads(node.sampling)["temperature"] == 0.2


def test_streaming_text_is_saved_at_most_twice_a_second(session, client, store, clock):
    session.messages.send("hello")

    def saved():
        store.writes.flush()
        return store.nodes.get(store.trees.head(session.tree_id)).text

    client.write("a")
    session.pump()
    assert saved() == ""
    clock.now = 0.5
    client.write("b")
    session.pump()
    assert saved() == "ab"
    clock.now = 0.9
    client.write("c")
    session.pump()
    assert saved() == "ab"
    clock.now = 1.0
    session.pump()
    assert saved() == "abc"


def test_messages_sent_during_an_answer_are_queued_in_order(session, client):
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    assert session.messages.queued == ("two", "three")
    client.write("1", eos=True)
    deltas = session.pump()
    assert session.messages.queued == ("three",)
    assert [view.text for view in session.path()] == ["one", "1", "two", ""]
    announced = {delta.node_id for delta in deltas}
    assert {view.id for view in session.path()[1:]} <= announced


def test_withdraw_takes_the_newest_queued_message_back(session, client):
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    assert session.messages.withdraw() == "three"
    assert session.messages.queued == ("two",)
    assert session.messages.withdraw() == "two"
    assert session.messages.withdraw() is None


def test_stop_keeps_the_text(session, client, store):
    session.messages.send("hello")
    client.write("half an ans")
    session.pump()
    session.answers.stop()
    assert client.cancelled == [client.requests[0].request_id]
    client.write("", finish=FinishReason.ABORT)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert (node.text, node.status, node.finish) == ("half an ans", NodeStatus.STOPPED, "abort")


def test_after_an_engine_error_the_conversation_can_continue(session, client):
    session.messages.send("hello")
    client.write("so f", finish=FinishReason.ERROR)
    (delta,) = session.pump()
    assert (delta.status, delta.error) == (NodeStatus.ERROR, "the step failed")
    assert session.path()[-1].error == "the step failed"
    session.messages.send("again")
    assert session.answers.generating


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


def test_undoing_all_operations_leaves_an_empty_usable_conversation(session, client):
    session.messages.send("hello")
    client.write("a", eos=True)
    session.pump()
    assert session.operations.undo() == "send"
    assert session.path() == []
    assert session.operations.undo() is None
    session.messages.send("other")
    client.write("b", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["other", "b"]


def test_a_new_session_resumes_the_last_conversation(session, client, store):
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    before = session.path()
    session.close()
    again = TreeSession(store, client)
    assert again.tree_id == session.tree_id
    assert again.path() == before
    assert again.context.used() == session.context.used() > 0


def test_close_keeps_the_partial_answer(session, client, store):
    session.messages.send("hello")
    client.write("par")
    session.pump()
    client.write("tial")
    session.close()
    session.close()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert (node.text, node.status) == ("partial", NodeStatus.STOPPED)


def test_an_empty_conversation_is_not_listed(session, client):
    assert session.conversations.find() == []
    first = session.tree_id
    session.messages.send("hello  world\nsecond line")
    assert [(t.id, t.title, t.messages) for t in session.conversations.find()] == [
        (first, "hello world second line", 2)
    ]
    session.conversations.open_new()
    assert len(session.conversations.find()) == 1


def test_an_answer_continues_while_another_conversation_is_open(session, client):
    first = session.tree_id
    session.messages.send("hello")
    session.messages.send("and then")
    session.conversations.open_new()
    assert not session.answers.generating
    client.write("hidden", eos=True)
    session.pump()
    session.conversations.open(first)
    assert [view.text for view in session.path()] == ["hello", "hidden", "and then", ""]
    assert session.answers.generating


def test_rename_delete_and_search(session, client):
    session.messages.send("tell me about rivers")
    client.write("they flow", eos=True)
    session.pump()
    tree = session.tree_id
    session.conversations.rename(tree, "Water")
    assert [t.title for t in session.conversations.find()] == ["Water"]
    assert [t.id for t in session.conversations.find("FLOW")] == [tree]
    assert [t.id for t in session.conversations.find("wa")] == [tree]
    assert session.conversations.find("100%") == []
    session.conversations.archive(tree)
    assert session.conversations.find() == []
    assert session.path() == []
    assert session.tree_id != tree


def test_deleting_a_conversation_stops_its_answer(session, client):
    session.messages.send("hello")
    session.conversations.archive(session.tree_id)
    assert client.cancelled == [client.requests[0].request_id]


def test_opening_a_missing_conversation_names_it(session):
    with pytest.raises(InvalidRequest, match="no conversation X"):
        session.conversations.open("X")


def test_a_refused_message_adds_nothing(session, client):
    client.refuse = QueueFull("The queue is full.")
    with pytest.raises(QueueFull):
        session.messages.send("hello")
    assert session.path() == []
    assert session.conversations.find() == []
    with pytest.raises(InvalidRequest, match="empty"):
        session.messages.send("  \n")


def test_a_conversation_longer_than_the_context_is_refused_and_says_what_to_do(store):
    client = ToyClient(context_length=100)
    session = TreeSession(store, client)
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    with pytest.raises(InvalidRequest, match="start a new conversation"):
        session.messages.send("x y " * 20)
    assert len(session.path()) == 2
    assert len(client.requests) == 1


def test_a_queued_message_that_is_refused_shows_as_a_failed_answer(store):
    client = ToyClient(context_length=100)
    session = TreeSession(store, client)
    session.messages.send("hello")
    session.messages.send("x y " * 40)
    client.write("hi", eos=True)
    deltas = session.pump()
    assert deltas[-1].status is NodeStatus.ERROR
    assert "The message alone has" in deltas[-1].error
    session.pump()
    assert not session.answers.generating
    assert session.path()[-1].status is NodeStatus.ERROR
    store.writes.flush()


def test_a_message_sent_while_the_model_loads_waits_for_it(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    assert session.answers.generating
    assert session.pump() == []
    client.state = EngineState.READY
    session.pump()
    assert len(client.requests) == 1
    client.write("hi", eos=True)
    session.pump()
    assert session.path()[-1].text == "hi"


def test_a_message_sent_while_the_model_is_changed_waits_for_the_next_one(session, client):
    client.next_model, client.state = "other", EngineState.DRAINING
    client.refuse = EngineUnavailable("The engine is changing its model.")
    session.messages.send("hello")
    client.state = EngineState.LOADING
    assert session.pump() == []
    assert session.answers.generating
    client.next_model, client.state, client.refuse = None, EngineState.READY, None
    session.pump()
    assert len(client.requests) == 1


def test_a_queued_message_waits_for_the_next_model(session, client):
    session.messages.send("hello")
    session.messages.send("and then")
    client.next_model, client.state = "other", EngineState.DRAINING
    client.refuse = EngineUnavailable("The engine is changing its model.")
    client.write("hi", eos=True)
    session.pump()
    assert session.answers.generating
    assert session.messages.queued == ()
    client.next_model, client.state, client.refuse = None, EngineState.READY, None
    session.pump()
    assert len(client.requests) == 2


def test_stopping_before_the_request_is_submitted(session, client, store):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    session.answers.stop()
    (delta,) = session.pump()
    assert delta.status is NodeStatus.STOPPED
    assert not session.answers.generating
    store.writes.flush()


def test_what_was_sent_during_a_load_that_fails_waits_for_another_model(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    session.messages.send("and then")
    client.state = EngineState.UNLOADED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    assert session.pump() == []
    session.answers.stop()
    session.pump()  # the queued message follows, and waits, too
    assert session.answers.generating
    assert session.path()[-2].text == "and then"
    client.state, client.refuse = EngineState.READY, None
    session.pump()
    client.write("hi", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["hello", "", "and then", "hi"]


def test_a_new_message_is_refused_while_no_model_is_loaded(session, client):
    client.state = EngineState.UNLOADED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    with pytest.raises(EngineUnavailable):
        session.messages.send("hello")
    assert session.path() == []


def test_an_engine_that_fails_fails_the_waiting_answer(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    client.state = EngineState.FAILED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    (delta,) = session.pump()
    assert (delta.status, delta.error) == (NodeStatus.ERROR, "The model could not be loaded.")


def test_the_system_prompt_becomes_a_node_and_changes_from_there_on(store, client):
    session = TreeSession(store, client, system_prompt="be brief")
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    assert session.path()[0].kind is NodeKind.SYSTEM
    session.system_prompt = "be long"
    session.messages.send("more")
    kinds = [view.kind.value for view in session.path()]
    assert kinds == ["system", "user", "assistant", "system", "user", "assistant"]
    text = client.detokenize(client.requests[-1].prompt_ids, skip_special=False)
    assert text.startswith("<|im_start|>system\nbe long<|im_end|>\n<|im_start|>user\nhello")
    assert "be brief" not in text
    client.write("ok", eos=True)
    session.pump()
    session.close()
    assert TreeSession(store, client).system_prompt == "be long"


def test_a_default_system_prompt_is_omitted_for_templates_without_one(store):
    client = ToyClient(ALTERNATING)
    session = TreeSession(store, client, system_prompt="be brief", system_required=False)
    session.messages.send("hello")
    assert [view.kind.value for view in session.path()] == ["user", "assistant"]
    asked = TreeSession(store, client, system_prompt="be brief", resume=False)
    with pytest.raises(InvalidRequest, match="alternate"):
        asked.messages.send("hello")


def test_empty_answers_are_omitted_unless_the_template_requires_them(store):
    for template, empty in ((None, False), (ALTERNATING, True)):
        client = ToyClient(template) if template else ToyClient()
        session = TreeSession(store, client, resume=False)
        session.messages.send("one")
        client.write("", finish=FinishReason.ABORT)
        session.pump()
        session.messages.send("two")
        text = client.detokenize(client.requests[-1].prompt_ids, skip_special=False)
        assert ("<|im_start|>assistant\n<|im_end|>" in text) is empty
        session.close()


def test_prompt_history_is_oldest_first_over_all_conversations(session, client, store):
    for text in ("a", "a", "b"):
        session.conversations.open_new()
        session.messages.send(text)
    assert session.messages.history() == ["a", "b"]
    session.close()
    assert TreeSession(store, client).messages.history() == ["a", "b"]


def test_an_answer_of_another_live_process_is_not_changed(tmp_path, client):
    one = Store.open(tmp_path / "c.db")
    writing = TreeSession(one, client)
    writing.messages.send("hello")
    one.writes.flush()
    two = Store.open(tmp_path / "c.db")
    reading = TreeSession(two, ToyClient())
    assert reading.path()[-1].status is NodeStatus.STREAMING
    with pytest.raises(InvalidRequest, match="Another Pravāha"):
        reading.messages.send("me too")
    client.write("hi", eos=True)
    writing.pump()
    one.writes.flush()
    reading.conversations.open(writing.tree_id)
    assert reading.path()[-1].text == "hi"
    two.close()
    one.close()


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def saved_texts(file, tree_id):
    """What another program reads from the file."""
    connection = sqlite3.connect(file)
    try:
        query = "SELECT text FROM node WHERE tree_id = ? ORDER BY n"
        return [text for (text,) in connection.execute(query, (tree_id,))]
    finally:
        connection.close()


def exchange(session, client, question, answer):
    session.messages.send(question)
    client.write(answer, eos=True)
    session.pump()


def test_what_is_said_while_the_disk_is_full_is_saved_when_there_is_room(session, client, store):
    exchange(session, client, "before", "saved")
    store.writes.flush()
    first = session.tree_id
    with full_disk(store.file):
        exchange(session, client, "one", "lost?")
        wait_until(lambda: session.writes.unsaved is not None)
        exchange(session, client, "two", "lost, too?")
        session.conversations.open_new()
        exchange(session, client, "elsewhere", "a new conversation")
        second = session.tree_id
        session.conversations.rename(second, "Beside")
        # All of it stays usable: in the list, when opened again, in a search.
        session.conversations.open(first)
        assert [view.text for view in session.path()][-2:] == ["two", "lost, too?"]
        assert [(tree.title, tree.messages) for tree in session.conversations.find("a new")] == [
            ("Beside", 2)
        ]
        assert {tree.id for tree in session.conversations.find()} == {first, second}
        with pytest.raises(StoreError, match="could not be saved"):
            session.operations.undo()
        with pytest.raises(StoreError, match="could not be saved"):
            session.close()
        assert saved_texts(store.file, first) == ["before", "saved"]
        (notice,) = iter(session.writes.take_notice, None)
        assert "cannot be saved" in notice
        assert "kept in memory" in notice
    store.writes.flush()
    assert session.writes.unsaved is None
    assert saved_texts(store.file, first) == [
        "before",
        "saved",
        "one",
        "lost?",
        "two",
        "lost, too?",
    ]
    assert saved_texts(store.file, second) == ["elsewhere", "a new conversation"]
    assert [tree.title for tree in store.searches.trees("elsewhere")] == ["Beside"]
    (notice,) = iter(session.writes.take_notice, None)
    assert "again" in notice
    store.check_integrity()
    session.close()


def test_an_answer_that_streams_while_the_disk_is_full_is_kept_once(session, client, store, clock):
    session.messages.send("hello")
    store.writes.flush()
    with full_disk(store.file):
        for _ in range(100):
            clock.now += 1
            client.write("word ")
            session.pump()
            wait_until(lambda: session.writes.unsaved is not None)
        store.writes.take_notice()
        with pytest.raises(StoreError):
            store.writes.flush()
        assert len(store.writes._writer._queue) < 5
    client.write("", eos=True)
    session.pump()
    store.writes.flush()
    assert saved_texts(store.file, session.tree_id) == ["hello", "word " * 100]


def test_a_transaction_that_sqlite_rolled_back_is_repeated(session, client, store, monkeypatch):
    exchange(session, client, "before", "saved")
    pages = store.writes.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    connect = database_connection.connect

    def connect_limited(path):
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(database_connection, "connect", connect_limited)
        store.writes.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}"))
        exchange(session, client, "long", "x" * 100_000)
        wait_until(lambda: session.writes.unsaved == "database or disk is full")
    wait_until(lambda: session.writes.unsaved is None and not session.writes.saving)
    assert saved_texts(store.file, session.tree_id)[2:] == ["long", "x" * 100_000]
    store.check_integrity()


def test_two_processes_in_one_conversation_lose_and_hide_nothing(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    exchange(first, client, "hello", "hi")
    one.writes.flush()
    other = ToyClient()
    second = TreeSession(two, other)
    exchange(second, other, "from the second", "yes")
    two.writes.flush()
    with pytest.raises(ConversationChanged, match="another Pravāha"):
        first.messages.send("from the first")
    shown = [view.text for view in first.path()]
    assert shown == ["hello", "hi", "from the second", "yes"]
    exchange(first, client, "from the first", "yes")
    # The first one's answer is queued behind its message: nobody comes between.
    first.messages.send("and")
    first.messages.send("then")
    one.writes.flush()
    with pytest.raises(InvalidRequest, match="is generating"):
        second.branches.regenerate()
    for text in ("a", "b"):
        client.write(text, eos=True)
        first.pump()
    one.writes.flush()
    with pytest.raises(ConversationChanged):
        second.operations.undo()
    for session in (first, second):
        assert [view.text for view in session.path()][4:] == [
            "from the first", "yes", "and", "a", "then", "b",
        ]  # fmt: skip
    two.close()
    one.close()


def test_a_message_to_a_conversation_that_another_process_archived_is_listed(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    exchange(first, client, "hello", "hi")
    one.writes.flush()
    second = TreeSession(two, ToyClient())
    second.conversations.archive(first.tree_id)
    two.writes.flush()
    assert first.conversations.find() == []
    exchange(first, client, "still here", "yes")
    one.writes.flush()
    assert [tree.id for tree in second.conversations.find()] == [first.tree_id]
    two.close()
    one.close()


def test_an_answer_of_a_process_that_died_can_be_continued(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    first.messages.send("hello")
    client.write("half")
    one.writes.flush()
    second = TreeSession(two, ToyClient())
    one.leases.release_all()
    one._lease.release()  # as the kernel does when the process dies
    with pytest.raises(ConversationChanged):
        second.messages.send("go on")
    assert second.path()[-1].status is NodeStatus.STOPPED
    second.messages.send("go on")
    two.close()
    one.close()
