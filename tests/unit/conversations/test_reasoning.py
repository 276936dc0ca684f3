"""Answers of a model that thinks: reasoning is kept apart, sent as the template wants, limited, ended."""

from dataclasses import replace

import jinja2
import pytest

from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.conversations.export import export_json
from engine.conversations.importing import read_conversation
from engine.conversations.thinking import Thinking, read_thinking
from engine.text.reasoning_markers import ReasoningMarkers, markers_of
from tests.fakes.chat_toys import CHATML, ToyClient
from tests.unit.conversations.talking import chat, reopened
from tests.unit.conversations.test_tool_answers import Tools

MARKERS = ReasoningMarkers("<think>", "</think>")
KEEPING = CHATML.replace(
    "m['content'] +",
    "(('<think>' + m['reasoning_content'] + '</think>') if m['reasoning_content'] else '')"
    " + m['content'] +",
)
"""Writes the reasoning of every answer; `CHATML` leaves it out."""
BEGINNING = CHATML.replace("'<|im_start|>assistant\n' }}", "'<|im_start|>assistant\n<think>\n' }}")
"""Begins the reasoning in the prompt."""
SWITCHED = CHATML.replace(
    "'<|im_start|>assistant\n' }}",
    "'<|im_start|>assistant\n' + ('<think></think>' if enable_thinking is false else '') }}",
)


@pytest.fixture
def client():
    client = ToyClient()
    client.markers = MARKERS
    return client


def use(client, template):
    client._template = jinja2.Environment().from_string(template)


def last(session):
    return session.path()[-1]


def stored(session):
    return session.nodes.full(session.head)


def prompt_text(client):
    return client.detokenize(client.requests[-1].prompt_ids, skip_special=False)


def test_the_reasoning_is_kept_apart_from_the_answer(session, client, store):
    chat(session, client, "why", "<think>\nfirst this</think>\n\nBecause.")
    assert (last(session).text, last(session).reasoning) == ("Because.", "first this")
    assert last(session).n_reasoning == len(client.tokenize("<think>\nfirst this</think>"))
    assert last(session).reasoning_us == 1_000_000
    node = stored(session)
    assert node.text == "<think>\nfirst this</think>\n\nBecause."
    assert node.prompt_text == "Because."
    other = reopened(session, store, client)
    assert (last(other).text, last(other).reasoning) == ("Because.", "first this")


def test_it_is_shown_while_it_arrives(session, client):
    session.messages.send("why")
    client.write("<think>so ")
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("", "so")
    assert last(session).n_reasoning
    client.write("far</think>Be")
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("Be", "so far")
    client.write("cause", eos=True)
    session.pump()
    assert last(session).text == "Because"


def test_reasoning_that_the_prompt_begins(session, client):
    use(client, BEGINNING)
    chat(session, client, "why", "first</think>Because.")
    assert (last(session).text, last(session).reasoning) == ("Because.", "first")
    assert client.requests[-1].sampling.reasoning.opening_ids == ()


def test_an_answer_that_ends_while_it_reasons_is_reasoning_alone(session, client):
    session.messages.send("why")
    client.write("<think>on and on", finish=FinishReason.LENGTH)
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("", "on and on")
    assert stored(session).prompt_text == ""


def test_such_an_answer_is_left_out_of_later_prompts(session, client):
    session.messages.send("why")
    client.write("<think>on and on", finish=FinishReason.LENGTH)
    session.pump()
    session.messages.send("so?")
    assert prompt_text(client).count("<|im_start|>assistant") == 1  # the one to come


def test_an_answer_without_reasoning_has_none(session, client):
    chat(session, client, "why", "Because <think> is a tag.")
    assert last(session).text == "Because <think> is a tag."
    assert last(session).reasoning is None
    assert last(session).n_reasoning is None
    assert stored(session).checked_text is None


def test_a_model_that_does_not_reason_writes_tags_as_text(session, client):
    client.markers = None
    chat(session, client, "why", "<think>x</think>y")
    assert last(session).text == "<think>x</think>y"
    assert client.requests[-1].sampling.reasoning is None


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (CHATML, "<|im_start|>assistant\nBecause.<|im_end|>"),
        (KEEPING, "<|im_start|>assistant\n<think>first</think>Because.<|im_end|>"),
    ],
)
def test_the_template_keeps_or_drops_earlier_reasoning(session, client, template, text):
    use(client, template)
    chat(session, client, "why", "<think>first</think>Because.")
    session.messages.send("more")
    assert text in prompt_text(client)


def test_reasoning_cannot_inject_a_control_token(session, client):
    use(client, KEEPING)
    chat(session, client, "why", "<think>a<|im_end|>b</think>Because.")
    session.messages.send("more")
    ids = client.requests[-1].prompt_ids
    assert ids.count(1) == 3  # of the template: after each of the three messages


def test_the_engine_is_told_how_to_end_it(session, client):
    session.messages.send("why")
    control = client.requests[-1].sampling.reasoning
    assert client.detokenize(control.closing_ids) == "</think>"
    assert client.detokenize(control.opening_ids) == "<think>"
    assert control.max_tokens is None


def test_what_follows_the_reasoning_has_no_space_that_the_tokenizer_adds_to_texts(session, client):
    client.markers = replace(MARKERS, answer="Well")
    encode = client.tokenizer.encode
    client.tokenizer.encode = lambda text, special=False: encode(
        text if special else f" {text}", special=special
    )
    session.messages.send("why")
    control = client.requests[-1].sampling.reasoning
    assert client.detokenize(control.answer_ids) == "Well"


def test_it_can_be_limited_and_switched_off(session, client):
    use(client, SWITCHED)
    session.answers.thinking = Thinking(max_tokens=100)
    session.messages.send("why")
    assert client.requests[-1].sampling.reasoning.max_tokens == 100
    session.answers.stop()
    session.conversations.open_new()
    session.answers.thinking = Thinking(enabled=False)
    session.messages.send("why")
    assert prompt_text(client).endswith("<think></think>")
    assert client.requests[-1].sampling.reasoning is None


def test_a_server_that_is_not_told_refuses_a_limit(session, client):
    client.is_controlled = False
    session.answers.thinking = Thinking(max_tokens=100)
    with pytest.raises(InvalidRequest, match="cannot be limited"):
        session.messages.send("why")
    session.answers.thinking = Thinking()
    session.messages.send("why")
    assert client.requests[-1].sampling.reasoning is None


def test_the_thinking_of_a_running_answer_is_ended(session, client):
    session.messages.send("why")
    assert not session.answers.end_reasoning()
    client.write("<think>so far")
    session.pump()
    assert session.answers.end_reasoning()
    assert client.reasoning_ended == [client.requests[-1].request_id]
    client.write("</think>Because.")
    session.pump()
    assert not session.answers.end_reasoning()


def test_a_fork_at_a_token_of_the_reasoning_goes_on_with_it(session, client):
    chat(session, client, "why", "<think>first</think>Because.")
    session.branches.fork_at_token(session.head, 9)
    client.write("ight</think>So.", eos=True)
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("So.", "fiight")


def test_so_does_one_that_waits_for_tools_and_is_looked_at(session, client):
    chat(session, client, "why", "<think>first</think>Because.")
    session._answering._tools = Tools()
    session.branches.fork_at_token(session.head, 9)
    assert (last(session).text, last(session).reasoning) == ("", "fi")
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("", "fi")
    client.write("ight</think>So.", eos=True)
    for _ in range(3):
        session.pump()
    assert (last(session).text, last(session).reasoning) == ("So.", "fiight")
    assert stored(session).prompt_text == "So."


def test_so_does_one_that_waits_for_its_model(session, client):
    chat(session, client, "why", "<think>first</think>Because.")
    client.state = EngineState.LOADING
    session.branches.fork_at_token(session.head, 9)
    session.path()
    client.state = EngineState.READY
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("", "fi")
    client.write("ight</think>So.", eos=True)
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("So.", "fiight")


HARMONY = "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>Because."


@pytest.mark.parametrize(
    ("template", "answer", "reasoning", "prompt"),
    [
        ("<|channel|>", HARMONY + FINAL, "hmm", "Because."),
        ("<|channel|>", FINAL, None, "Because."),
        (
            "</think><response></response>",
            "<think>hmm</think><response>Because.</response>",
            "hmm",
            "<response>Because.</response>",
        ),
        (
            "Here are my reasoning steps:[BEGIN FINAL RESPONSE]",
            "Here are my reasoning steps:\nhmm\n[BEGIN FINAL RESPONSE]\nBecause.\n[END FINAL RESPONSE]",
            "hmm",
            "Because.\n[END FINAL RESPONSE]",
        ),
    ],
)
def test_other_markers_are_not_shown(session, client, store, template, answer, reasoning, prompt):
    client.markers = markers_of(template)
    for cut in (len(answer), 40, 7):
        session.conversations.open_new()
        session.messages.send("why")
        client.write(answer[:cut])
        session.pump()
        assert "<" not in last(session).text
        assert "[" not in last(session).text
        client.write(answer[cut:], eos=True)
        session.pump()
        assert (last(session).text, last(session).reasoning) == ("Because.", reasoning)
        assert stored(session).prompt_text == prompt
        other = reopened(session, store, client)
        assert (last(other).text, last(other).reasoning) == ("Because.", reasoning)


def test_an_answer_of_messages_that_only_thinks_has_no_text(session, client):
    client.markers = markers_of("<|channel|>")
    session.messages.send("why")
    client.write("<|channel|>analysis<|message|>on and on", finish=FinishReason.LENGTH)
    session.pump()
    assert (last(session).text, last(session).reasoning) == ("", "on and on")
    assert stored(session).prompt_text == ""


def test_what_stands_before_a_grammar_is_that_of_the_model(session, client):
    client.markers = markers_of("<|channel|>")
    session.messages.send("why")
    control = client.requests[-1].sampling.reasoning
    assert client.detokenize(control.answer_ids) == "<|start|>assistant<|channel|>final<|message|>"


def test_export_and_import_keep_it(session, client, store):
    chat(session, client, "why", "<think>first</think>Because.")
    numbers = iter(range(100))
    contents = read_conversation(
        export_json(session.contents()), new_id=lambda: f"new-{next(numbers):03d}", now=1.0
    )
    store.trees.restore(contents)
    store.writes.flush()
    session.conversations.open(contents.tree_id)
    assert (last(session).text, last(session).reasoning) == ("Because.", "first")
    assert stored(session).prompt_text == "Because."


@pytest.mark.parametrize(
    ("text", "thinking", "words"),
    [
        ("on", Thinking(True), "on"),
        ("off", Thinking(False), "off"),
        ("high 500", Thinking(True, "high", 500), "on, effort high, at most 500 tokens"),
        ("500, off", Thinking(False, None, 500), "off, at most 500 tokens"),
        ("high default", Thinking(), "as the model does"),
        ("", Thinking(), "as the model does"),
    ],
)
def test_thinking_is_read_and_said(text, thinking, words):
    assert read_thinking(text) == thinking
    assert str(thinking) == words


@pytest.mark.parametrize("text", ["maybe", "-1", "1.5", "9999999999"])
def test_what_thinking_is_not(text):
    with pytest.raises(InvalidRequest, match="should be on, off"):
        read_thinking(text)
