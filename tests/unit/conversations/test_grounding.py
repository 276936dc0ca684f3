"""Branches with sources: passages are found, stored with the message, cited and checked."""

import sqlite3

import pytest

from engine.api.errors import InvalidRequest, ModelNotFound
from engine.api.generation_defaults import GenerationDefaults
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.conversations.errors import MessageTooLong
from engine.conversations.export import export_json
from engine.conversations.passage_source import CheckedAnswer
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus
from engine.text.reasoning_markers import ReasoningMarkers
from tests.fakes.chat_toys import ToyClient
from tests.fakes.fake_passages import FakeCheck, FakePassages, found


@pytest.fixture
def source():
    return FakePassages()


@pytest.fixture
def session(store, client, source):
    return TreeSession(store, client, stop_repetition=False, passages=source)


def ask(session, client, source, text, answer, *passages):
    """Send a message on a branch with sources, find passages for it and answer it; the answer's id."""
    session.messages.send(text)
    source.searches[-1].finish(*passages)
    session.pump()
    client.write(answer, eos=True)
    session.pump()
    return session.head


def prompt(client, at=-1):
    return client.detokenize(client.requests[at].prompt_ids)


def reopened(session, store, client, source=None):
    store.writes.flush()
    other = TreeSession(store, client, passages=source)
    other.conversations.open(session.tree_id)
    return other


def test_a_message_waits_for_its_passages_and_is_answered_from_them(session, client, source):
    session.sources.attach("docs")
    session.messages.send("where?")
    search = source.searches[0]
    assert (search.names, search.question, search.earlier) == (("docs",), "where?", ())
    assert search.room == 4096 // 2
    session.pump()
    assert client.requests == []
    assert session.answers.generating
    search.finish("Here.", "There.")
    deltas = session.pump()
    question, answer = session.path()
    assert [one.node_id for one in deltas] == [question.id, answer.id]
    assert "[1] Here.\n[2] There.\n\nwhere?" in prompt(client)
    assert client.requests[0].sampling.grammar.source == "cites up to 2"
    assert (question.text, question.n_passages, answer.n_passages) == ("where?", 2, 2)


def test_the_first_answer_to_passages_is_greedy_and_further_ones_are_sampled(
    session, client, source
):
    session.sources.attach("docs")
    client.generation_defaults = GenerationDefaults(temperature=0.7, repetition_penalty=1.2)
    ask(session, client, source, "where?", "there [1]", "Here.")
    session.branches.regenerate()
    first, second = (request.sampling for request in client.requests)
    assert (first.temperature, first.repetition_penalty, first.stop) == (
        0.0,
        1.0,
        ("\n\n",),
    )
    assert (second.temperature, second.repetition_penalty, second.stop) == (0.7, 1.2, ())


def test_sampling_parameters_of_the_user_apply_to_answers_from_passages(session, client, source):
    session.sources.attach("docs")
    session.sampling.change({"temperature": 0.9})
    ask(session, client, source, "where?", "there [1]", "Here.")
    assert client.requests[0].sampling.temperature == 0.9


def test_without_sources_nothing_is_searched_and_no_grammar_applies(session, client, source):
    session.messages.send("hello")
    assert source.searches == []
    assert client.requests[0].sampling.grammar is None


def test_the_next_prompt_begins_with_the_last_one_passages_included(session, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "one?", "1", "First.")
    ask(session, client, source, "two?", "2", "Second.")
    assert source.searches[1].earlier == ("one?",)
    before, after = (request.prompt_ids for request in client.requests)
    assert after[: len(before)] == before
    assert "First." in prompt(client)
    assert "Second." in prompt(client)


def test_passages_survive_a_restart_and_are_not_sought_again(session, store, client, source):
    session.sources.attach("docs")
    answer = ask(session, client, source, "where?", "there [1]", "Here.")
    before = client.requests[0].prompt_ids
    fresh = FakePassages()
    other = reopened(session, store, client, fresh)
    assert other.sources.names == ("docs",)
    assert other.sources.passages_of(answer) == found("Here.")
    other.branches.regenerate()
    assert fresh.searches == []
    assert client.requests[-1].prompt_ids == before
    assert client.requests[-1].sampling.grammar.source == "cites up to 1"


def test_a_fork_keeps_its_sources_and_detaching_there_leaves_the_other_branch(
    session, store, client, source
):
    session.sources.attach("docs")
    first = ask(session, client, source, "one?", "1", "First.")
    ask(session, client, source, "two?", "2", "Second.")
    main = session.head
    session.branches.fork(first)
    assert session.sources.names == ("docs",)
    session.sources.detach("docs")
    session.sources.attach("other")
    assert session.sources.names == ("other",)
    session.branches.adopt(main)
    assert session.sources.names == ("docs",)
    assert reopened(session, store, client).tree.sources_after(first) == ("other",)


def test_attaching_can_be_undone_and_is_not_done_twice(session, client, source):
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    assert session.sources.attach("docs")
    assert not session.sources.attach("docs")
    assert session.operations.undo() == "attach docs"
    assert session.sources.names == ()
    assert session.operations.redo() == "attach docs"
    assert session.sources.names == ("docs",)
    assert not session.sources.detach("none")


def test_sources_attached_to_an_empty_conversation_are_saved_with_its_first_message(
    session, store, client, source
):
    session.sources.attach("docs")
    ask(session, client, source, "one?", "1", "First.")
    assert reopened(session, store, client).sources.names == ("docs",)


def test_the_answers_side_by_side_share_one_search(session, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "one?", "1", "First.")
    session.branches.edit(session.path()[0].id, "uno?")
    source.searches[-1].finish("Primo.")
    session.pump()
    client.write("1", eos=True)
    session.pump()
    session.branches.expand(3)
    assert len(source.searches) == 2
    assert [r.sampling.grammar.source for r in client.requests[-3:]] == ["cites up to 1"] * 3


def test_a_failed_search_ends_the_answer_with_its_sentence_and_another_one_searches_again(
    session, client, source
):
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].future.set_exception(ModelNotFound("It is not installed."))
    session.pump()
    answer = session.path()[-1]
    assert (answer.status, answer.error) == (NodeStatus.ERROR, "It is not installed.")
    session.branches.regenerate()
    source.searches[1].finish("Here.")
    session.pump()
    assert "Here." in prompt(client)


def test_an_unexpected_failure_of_a_search_is_a_sentence_too(session, source):
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].future.set_exception(OSError("the disk is gone"))
    session.pump()
    assert session.path()[-1].error == "The passages could not be found: the disk is gone."


def test_an_answer_stopped_during_its_search_is_never_submitted(session, client, source):
    session.sources.attach("docs")
    session.messages.send("where?")
    session.answers.stop()
    source.searches[0].finish("Here.")
    session.pump()
    assert client.requests == []
    assert session.path()[-1].status is NodeStatus.STOPPED


def test_a_queued_message_is_searched_for_when_it_is_its_turn(session, client, source):
    session.sources.attach("docs")
    session.messages.send("one?")
    session.messages.send("two?")
    source.searches[0].finish("First.")
    session.pump()
    client.write("1", eos=True)
    session.pump()
    assert [one.question for one in source.searches] == ["one?", "two?"]
    source.searches[1].finish("Second.")
    session.pump()
    assert "First." in prompt(client)
    assert "Second." in prompt(client)


def test_a_message_that_does_not_fit_is_refused_before_anything_is_searched(source, store):
    client = ToyClient(context_length=64)
    session = TreeSession(store, client, passages=source)
    session.sources.attach("docs")
    with pytest.raises(MessageTooLong):
        session.messages.send("x" * 100)
    assert source.searches == []
    assert session.path() == []


def test_passages_that_leave_no_room_are_a_sentence_of_the_answer(source, store):
    client = ToyClient(context_length=200)
    session = TreeSession(store, client, passages=source)
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].finish("word " * 50)
    session.pump()
    assert session.path()[-1].status is NodeStatus.ERROR
    assert "tokens" in session.path()[-1].error


def test_passages_are_found_while_the_model_is_loading(store, source):
    client = ToyClient(state=EngineState.LOADING)
    session = TreeSession(store, client, passages=source)
    session.sources.attach("docs")
    session.messages.send("where?")
    assert source.searches[0].room is None
    source.searches[0].finish("Here.")
    session.pump()
    assert client.requests == []
    client.state = EngineState.READY
    session.pump()
    assert "Here." in prompt(client)


def test_an_answer_shows_what_its_check_lets_pass_and_ends_when_that_has_ended(
    session, store, client, source
):
    check = source.next_check = FakeCheck(
        lambda text: CheckedAnswer("It is there [unsupported].", '[{"n": 1}]'), held=True
    )
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].finish("Here.")
    session.pump()
    client.write("It is there [1].")
    session.pump()
    answer = session.head
    assert check.fed == ["It is there [1]."]
    assert session.view(answer).text == ""
    check.show("It is there")
    assert [one.text for one in session.pump()] == ["It is there"]
    assert session.view(answer).text == "It is there"
    client.write("", eos=True)
    session.pump()
    assert check.complete
    assert (
        session.view(answer).status is NodeStatus.STREAMING
    )  # its last citation is not checked yet
    check.show(" [unsupported].")
    check.end()
    (delta,) = session.pump()
    assert (delta.text, delta.status) == (" [unsupported].", NodeStatus.DONE)
    for one in (session, reopened(session, store, client)):
        view = one.view(answer)
        assert (view.text, view.citations) == ("It is there [unsupported].", '[{"n": 1}]')
    # What was generated, and what later prompts contain.
    assert store.nodes.get(answer).text == "It is there [1]."


def test_an_answer_of_which_nothing_more_is_shown_is_not_generated_further(session, client, source):
    session.sources.attach("docs")
    session.messages.send("where?")
    source.searches[0].finish("Here.")
    session.pump()
    source.checks[0][0].ended = True
    client.write("Here. Here.")
    session.pump()
    assert client.cancelled == [client.requests[0].request_id]
    client.write("", finish=FinishReason.ABORT)
    session.pump()
    view = session.view(session.head)
    assert (view.status, view.finish) == (NodeStatus.DONE, "stop")


def test_a_check_that_fails_leaves_the_answer_as_it_is(session, client, source):
    session.sources.attach("docs")
    source.next_check = FakeCheck(lambda text: None)
    answer = ask(session, client, source, "where?", "there [1]", "Here.")
    view = session.view(answer)
    assert (view.text, view.citations, view.status) == ("there [1]", None, NodeStatus.DONE)


def test_answers_without_passages_are_not_checked(session, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "where?", "I do not know.")
    assert source.checks == []


def test_an_empty_answer_is_not_checked(session, client, source):
    session.sources.attach("docs")
    answer = ask(session, client, source, "where?", "", "Here.")
    assert not source.checks[0][0].complete
    assert session.view(answer).citations is None


def test_a_fork_at_a_token_is_checked_from_its_beginning(session, client, source):
    session.sources.attach("docs")
    answer = ask(session, client, source, "where?", "over there", "Here.")
    session.branches.fork_at_token(answer, 4)
    client.write("!", eos=True)
    session.pump()
    check, _, question = source.checks[-1]
    assert "".join(check.fed) == session.view(session.head).text
    assert question == "where?"


@pytest.mark.parametrize("waits", [False, True])
def test_the_citations_of_a_fork_are_checked_without_its_reasoning(session, client, source, waits):
    client.markers = ReasoningMarkers("<think>", "</think>")
    session.sources.attach("docs")
    answer = ask(session, client, source, "where?", "<think>first</think>there", "Here.")
    client.state = EngineState.LOADING if waits else EngineState.READY
    session.branches.fork_at_token(answer, 9)
    session.path()
    client.state = EngineState.READY
    for _ in range(2):
        session.pump()
        assert session.view(session.head).text == ""
    client.write("ight</think>here", eos=True)
    session.pump()
    assert "".join(source.checks[-1][0].fed) == session.view(session.head).text == "here"


def test_closing_waits_for_a_check(session, store, client, source):
    session.sources.attach("docs")
    source.next_check = FakeCheck(held=True)
    answer = ask(session, client, source, "where?", "there [1]", "Here.")
    assert session.answers.generating
    session.close()
    assert store.nodes.get(answer).citations == "[]"
    assert store.nodes.get(answer).status is NodeStatus.DONE


def test_a_passage_of_two_messages_is_in_the_prompt_once_and_again_when_the_first_is_dropped(
    session, client, source
):
    session.sources.attach("docs")
    ask(session, client, source, "one?", "1", "Same.", "First.")
    ask(session, client, source, "two?", "2", "Same.", "Second.")
    before, after = (request.prompt_ids for request in client.requests)
    assert after[: len(before)] == before
    assert prompt(client).count("Same.") == 1
    assert "Second." in prompt(client)
    session.context.shorten(summarised=False, keep=1)
    ask(session, client, source, "three?", "3", "Third.")
    assert "First." not in prompt(client)
    assert prompt(client).count("Same.") == 1


def test_stored_passages_never_change(session, store, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "where?", "there", "Here.")
    store.writes.flush()
    connection = sqlite3.connect(store.file)
    with pytest.raises(sqlite3.IntegrityError, match="passages of a message never change"):
        connection.execute("UPDATE node SET context = 'x' WHERE kind = 'user'")
    connection.close()


def test_passages_are_exported_and_imported(session, store, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "where?", "there [1]", "Here.")
    text = export_json(session.contents())
    session.conversations.add(text)
    assert session.sources.passages_of(session.head) == found("Here.")
    assert session.sources.names == ()  # they are of the machine where it was exported


def test_a_conversation_with_sources_can_be_deleted_for_good(session, store, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "where?", "there", "Here.")
    erased = session.tree_id
    session.conversations.archive(erased)
    assert session.conversations.erase([erased]) == 1
    store.check_integrity()


def test_a_summary_is_no_question_to_the_documents(session, client, source):
    session.sources.attach("docs")
    for text in ("one?", "two?"):
        ask(session, client, source, text, "yes", "Here.")
    session.context.shorten(summarised=True, keep=1)
    assert len(source.searches) == 2
    assert client.requests[-1].sampling.grammar is None


def test_a_copied_answer_keeps_its_passages(session, client, source):
    session.sources.attach("docs")
    first = ask(session, client, source, "where?", "there [1]", "Here.")
    session.branches.rewind(session.path()[0].id)
    session.branches.regenerate()
    client.write("nowhere", eos=True)
    session.pump()
    copy = session.merging.cherry_pick(first)
    assert session.view(copy).n_passages == 1
    assert session.sources.passages_of(copy) == found("Here.")


def test_an_unknown_message_has_no_passages(session):
    assert session.sources.passages_of("nothing") is None


def test_the_model_reads_messages_as_the_source_gives_them_and_they_are_stored_as_typed(
    session, store, client, source
):
    session.sources.attach("docs")
    ask(session, client, source, "@docs where?", "there [1]", "Here.")
    ask(session, client, source, "@docs and who?", "me [1]", "There.")
    assert "\n\nwhere?" in prompt(client)
    assert "@docs" not in prompt(client)
    before, after = (request.prompt_ids for request in client.requests)
    assert after[: len(before)] == before
    assert session.path()[0].text == "@docs where?"
    assert reopened(session, store, client, FakePassages()).path()[0].text == "@docs where?"


def test_a_declined_message_is_asked_again_and_answered_anyway(session, store, client, source):
    session.sources.attach("docs")
    ask(session, client, source, "where?", "nowhere")
    first, answer = session.path()
    assert first.n_passages == 0
    again = session.branches.ask_anyway(answer.id)
    assert [one.anyway for one in source.searches] == [False, True]
    source.searches[-1].finish("Here.")
    session.pump()
    client.write("here [1]", eos=True)
    session.pump()
    assert [one.text for one in session.path()] == ["where?", "here [1]"]
    assert session.path()[0].id == again
    assert session.tree.path(again)[:-1] == session.tree.path(first.id)[:-1]
    with pytest.raises(InvalidRequest, match="do not answer"):
        session.branches.ask_anyway()
    session.branches.rewind(first.id)
    session.branches.ask_anyway()
    assert len(source.searches) == 3


def test_a_message_without_sources_cannot_be_answered_anyway(session, client, source):
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    with pytest.raises(InvalidRequest, match="do not answer"):
        session.branches.ask_anyway()
