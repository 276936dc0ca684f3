"""The client of the agent-session comparison: what it sends, and what of it is new."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks import agent_session_cache
from benchmarks.agent_session_cache import (
    ANSWER_TOKENS,
    REASONING_TOKENS,
    Cost,
    Session,
    Turn,
    replay,
    sessions_of,
    table,
    turns_of,
)
from engine.executors.open_model import open_model
from engine.text.common_prefix import common_prefix
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.traces.replay import ROOT, load, names

ANSWER = [*range(200, 200 + ANSWER_TOKENS)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return open_model(write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")).tokenizer


def test_a_prompt_goes_on_from_the_answer_until_the_next_task_drops_the_reasoning(tokenizer):
    session = Session(tokenizer, "You are an agent. " * 40, head_tokens=50)
    first = session.prompt(Turn("main", ("Find it.",), new_task=True))
    assert tokenizer.decode(first[-len(tokenizer.encode("Find it.")) - 20 :]).count("Find it.") == 1
    session.take(ANSWER)
    second = session.prompt(Turn("main", ("a result",), new_task=False))
    assert second[: len(first) + ANSWER_TOKENS] == first + ANSWER
    session.take(ANSWER)
    third = session.prompt(Turn("main", ("And now?",), new_task=True))
    # From the first answer on it differs from all before.
    assert third[: len(first)] == first
    assert (
        third[len(first) : len(first) + ANSWER_TOKENS - REASONING_TOKENS]
        == (ANSWER[REASONING_TOKENS:])
    )
    assert third.count(ANSWER[0]) == 0
    assert third.count(ANSWER[-1]) == 2


@pytest.mark.parametrize("name", names())
def test_every_trace_has_tasks_and_results(name, tokenizer):
    turns = turns_of(load(name))
    assert turns[0].new_task
    assert {turn.agent for turn in turns} <= set(sessions_of(load(name), tokenizer, 20))
    assert any(not turn.new_task for turn in turns)
    assert all(turn.texts for turn in turns)


def test_files_in_results_are_read_and_cut():
    adds = [{"results": [{"file": "README.md", "chars": 10}, "2 todos"]}]
    (turn,) = turns_of({"steps": [{"agent": "main", "adds": adds}]})
    assert turn == Turn("main", ((ROOT / "README.md").read_text()[:10], "2 todos"), new_task=False)


class Server:
    """Remembers the last sequence, as a server with one slot does."""

    port = 1

    def __init__(self) -> None:
        self.last = np.zeros(0, np.int32)
        self.runs = False

    @contextmanager
    def running(self) -> Iterator[None]:
        self.runs = True
        yield
        self.runs = False

    def complete(self, port, prompt):
        assert self.runs
        computed = len(prompt) - common_prefix(self.last, np.array(prompt, np.int32))
        self.last = np.array([*prompt, *ANSWER], np.int32)
        return {"tokens": ANSWER, "timings": {"prompt_n": computed, "prompt_ms": 2000.0}}


def test_a_session_is_replayed_and_its_tokens_are_counted(tokenizer, monkeypatch):
    server = Server()
    monkeypatch.setattr(agent_session_cache, "complete", server.complete)
    turns = [
        Turn("main", ("a",), True),
        Turn("main", ("b", "c"), False),
        Turn("main", ("d",), True),
    ]
    costs = list(replay(server, {"main": Session(tokenizer, "Help.", 20)}, turns))
    assert [one.computed for one in costs] == [one.new for one in costs]
    assert costs[0].computed == costs[0].prompt
    assert costs[1].computed < costs[1].prompt - costs[0].prompt
    lines = table({"ours": costs, "theirs": [Cost(9, 9, 1234, 0.5)] * 3}).splitlines()
    assert lines[0] == "| request | prompt | new | ours | theirs | ours, s | theirs, s |"
    assert lines[3].startswith(
        f"| 2 | {costs[1].prompt} | {costs[1].new} | {costs[1].computed} | 1,234 |"
    )
    total = sum(one.computed for one in costs)
    assert lines[-1].endswith(f"| {total} | 3,702 | 6.0 | 1.5 |")


def test_new_tokens_are_those_that_no_agent_has_sent(tokenizer, monkeypatch):
    server = Server()
    monkeypatch.setattr(agent_session_cache, "complete", server.complete)
    trace = {"agents": {"main": {"system": ["You help."]}, "sub": {"system": ["You read."]}}}
    turns = [Turn("main", ("a",), True), Turn("sub", ("b",), True), Turn("main", ("c",), False)]
    costs = list(replay(server, sessions_of(trace, tokenizer, 20), turns))
    assert costs[2].new < costs[2].prompt - costs[0].prompt
    # One slot has lost what the main agent sent before.
    assert costs[2].computed > costs[2].new + costs[0].prompt // 2
