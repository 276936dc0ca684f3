"""Grammars in the engine: compilation off its thread, refusals, aborts, shutdown."""

import threading
from dataclasses import replace

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.grammar import Grammar
from engine.api.request import FinishReason
from tests.fakes.grammars import toy_compiler
from tests.fakes.toy_engine import ask, toy_engine
from tests.fakes.toy_executor import oracle

DIGITS = Grammar.regex("[0-9]{6}")


def constrained(prompt, grammar, **params):
    return ask(prompt, grammar=grammar, ignore_eos=False, **params)


class GatedChecker:
    """A checker whose compilations wait until the test opens the gate."""

    def __init__(self):
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.texts = []

    def check(self, text, *, quick):
        self.texts.append(text)
        self.entered.release()
        self.gate.wait()
        return ""

    def close(self):
        self.gate.set()


@pytest.fixture
def checker():
    return GatedChecker()


@pytest.fixture
def engine(checker):
    """An engine whose grammars are compiled when the test opens the gate."""
    engine, _ = toy_engine(
        grammar_compiler=lambda tokenizer, size: toy_compiler(
            tokenizer, size, builders=1, checker=lambda: checker
        )
    )
    engine.start()
    yield engine
    engine.shutdown()


@pytest.fixture
def plain_engine():
    engine, _ = toy_engine()
    engine.start()
    yield engine
    engine.shutdown()


def test_a_slow_build_stalls_no_other_request(engine, checker):  # regression 53
    slow = engine.submit(constrained("slow", DIGITS))
    checker.entered.acquire()  # the build has begun and waits at the gate
    for number in range(5):
        request = ask(f"other {number}")
        assert engine.submit(request).wait_result(30).token_ids == oracle(request)
    assert not slow.finished
    assert engine.snapshot().waiting == 1
    checker.gate.set()
    output = slow.wait_result(30)
    assert output.text.isdecimal()
    assert output.finish_reason is FinishReason.STOP


def test_a_request_that_waits_for_its_grammar_can_be_aborted(engine, checker):
    handle = engine.submit(constrained("x", DIGITS))
    checker.entered.acquire()
    handle.abort()
    assert handle.wait_result(30).finish_reason is FinishReason.ABORT
    checker.gate.set()
    engine.build_grammar(DIGITS).result(30)
    request = ask("after")
    assert engine.submit(request).wait_result(30).token_ids == oracle(request)
    assert engine.snapshot().waiting == 0


def test_an_abort_cancels_the_compilation(engine, checker):
    slow = engine.submit(constrained("x", DIGITS))
    checker.entered.acquire()
    leaves = engine.submit(constrained("y", Grammar.regex("unwanted")))
    leaves.abort()
    assert leaves.wait_result(30).finish_reason is FinishReason.ABORT
    assert engine.snapshot().waiting == 1
    last = engine.build_grammar(Grammar.regex("last"))
    checker.gate.set()
    assert slow.wait_result(30).finish_reason is FinishReason.STOP
    last.result(30)
    assert [text for text in checker.texts if "unwanted" in text] == []


def test_a_refused_submission_cancels_its_compilations(engine, checker):
    live = engine.submit(constrained("x", DIGITS))
    checker.entered.acquire()
    with pytest.raises(InvalidRequest, match="in use"):
        engine.submit(
            replace(constrained("y", Grammar.regex("unwanted")), request_id=live.request_id)
        )
    last = engine.build_grammar(Grammar.regex("last"))
    checker.gate.set()
    last.result(30)
    assert [text for text in checker.texts if "unwanted" in text] == []


def test_shutting_down_ends_requests_that_wait_for_their_grammar(engine, checker):
    handle = engine.submit(constrained("x", DIGITS))
    checker.entered.acquire()
    engine.shutdown()
    assert handle.wait_result(30).finish_reason is FinishReason.ABORT
    with pytest.raises(EngineUnavailable):
        engine.submit(constrained("y", DIGITS))


def test_a_bad_schema_is_refused_and_the_engine_lives(plain_engine):  # regression 53
    bad = Grammar.json_schema({"type": "object", "not": {}})
    output = plain_engine.submit(constrained("x", bad)).wait_result(60)
    assert output.finish_reason is FinishReason.ERROR
    assert output.error.startswith("The JSON schema cannot be used")
    with pytest.raises(InvalidRequest, match="cannot be used") as refused:  # known by now
        plain_engine.submit(constrained("x", bad))
    assert refused.value.param == "grammar"
    with pytest.raises(InvalidRequest, match="not valid JSON"):  # before the build
        plain_engine.submit(constrained("x", Grammar.json_schema("{")))
    request = ask("after")
    assert plain_engine.submit(request).wait_result(30).token_ids == oracle(request)
    good = plain_engine.submit(constrained("x", DIGITS)).wait_result(60)
    assert good.text.isdecimal()
    assert plain_engine.snapshot().blocks.active == 0


def test_a_build_can_be_waited_for_before_anything_is_submitted(plain_engine):
    build = plain_engine.build_grammar(DIGITS)
    build.result(60)
    assert plain_engine.submit(constrained("x", DIGITS)).wait_result(30).text.isdecimal()
    with pytest.raises(InvalidRequest, match="cannot be used"):
        plain_engine.build_grammar(Grammar.regex("([")).result(60)


def test_ignore_eos_with_a_grammar_is_refused(plain_engine):
    with pytest.raises(InvalidRequest, match="ignore_eos") as refused:
        plain_engine.submit(ask("x", grammar=DIGITS, ignore_eos=True))
    assert refused.value.param == "ignore_eos"


def test_forks_of_a_live_request_keep_their_grammar(plain_engine):  # regression 37
    gate = threading.Semaphore(0)
    engine, executor = toy_engine()
    executor.gate = gate
    engine.start()
    engine.build_grammar(Grammar.regex("[a-m]{4}[n-z]{4}")).result(60)
    parent = engine.submit(constrained("x", Grammar.regex("[a-m]{4}[n-z]{4}"), max_tokens=20))
    for _ in range(3):
        executor.entered.acquire()
        gate.release()
    executor.entered.acquire()
    children = engine.fork(parent.request_id, n=3)
    gate.release(1000)
    for handle in (parent, *children):
        output = handle.wait_result(30)
        assert output.finish_reason is FinishReason.STOP
        whole = "".join(
            chr(32 + one) for one in (*handle.request.prompt_ids[1:], *output.token_ids)
        )
        assert len(whole) == 8
        assert whole[:4].translate(str.maketrans("", "", "abcdefghijklm")) == ""
        assert whole[4:].translate(str.maketrans("", "", "nopqrstuvwxyz")) == ""
    engine.shutdown()


def test_llguidance_is_not_imported_without_a_grammar():
    """The import would slow down every cold start, and most requests have no grammar."""
    import subprocess
    import sys

    script = (
        "import sys; from tests.fakes.toy_engine import ask, toy_engine\n"
        "engine, _ = toy_engine(); engine.start(); engine.submit(ask('x')).wait_result(30)\n"
        "engine.shutdown(); sys.exit('llguidance' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
