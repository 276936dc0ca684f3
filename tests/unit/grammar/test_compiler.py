"""Builds of grammars: cached, asynchronous, bounded, with errors in one sentence."""

import threading
from types import SimpleNamespace

import orjson
import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.grammar import Grammar
from engine.grammar.checker import Checker
from engine.grammar.source import library_text, parse_source
from tests.fakes.grammars import compiled, toy_compiler


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler()
    yield compiler
    compiler.close()


class GatedChecker:
    """A checker that blocks until the test opens the gate."""

    gate = threading.Event()

    def check(self, text, *, quick):
        assert self.gate.wait(60)
        return ""

    def close(self):
        self.gate.set()


@pytest.fixture
def gated():
    GatedChecker.gate = threading.Event()
    return GatedChecker


def test_a_grammar_is_built_once(compiler):
    first = compiled(compiler, Grammar.regex("abc"))
    assert compiled(compiler, Grammar.regex("abc")) is first
    assert compiled(compiler, Grammar.regex("abd")) is not first
    assert compiled(compiler, Grammar.lark('start: "abc"')) is not first


def test_a_source_is_parsed_once(compiler, monkeypatch):
    parsed = []
    monkeypatch.setattr(
        "engine.grammar.source.orjson",
        SimpleNamespace(
            loads=lambda text: parsed.append(text) or orjson.loads(text), dumps=orjson.dumps
        ),
    )
    for grammar in (Grammar.json_schema({"const": "once"}), Grammar.choice(["once"])):
        compiled(compiler, grammar)
        compiled(compiler, grammar)
        assert parsed == [grammar.source]
        parsed.clear()


def test_a_build_in_progress_is_shared(gated):
    compiler = toy_compiler(checker=gated)
    first, second = (compiler.build(Grammar.regex("abc")) for _ in range(2))
    assert not first.done()
    first.cancel()  # the other caller still waits
    gated.gate.set()
    assert second.result(60).matcher().consume([ord("a") - 32])
    assert compiled(compiler, Grammar.regex("abc")) is second.result()
    compiler.close()


def test_the_least_recently_used_grammar_is_evicted(compiler):
    small = toy_compiler(max_cached=2)
    a, b, c = (Grammar.regex(one) for one in "abc")
    kept = [compiled(small, a), compiled(small, b)]
    assert compiled(small, a) is kept[0]
    compiled(small, c)
    assert compiled(small, a) is kept[0]
    assert compiled(small, b) is not kept[1]
    small.close()


def test_pending_builds_are_bounded(gated):
    compiler = toy_compiler(checker=gated, max_pending=3, builders=1)
    builds = [compiler.build(Grammar.regex(one)) for one in "abc"]
    with pytest.raises(QueueFull, match="3 grammars are being built"):
        compiler.build(Grammar.regex("d"))
    gated.gate.set()
    for build in builds:
        build.result(60)
    compiled(compiler, Grammar.regex("d"))
    compiler.close()


class RecordingChecker:
    """Answers each check when the test releases it; `costly` texts exceed the quick allowance."""

    def __init__(self, *costly):
        self.costly = costly
        self.checked = []
        self.releases = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)

    def check(self, text, *, quick):
        name = next(word for word in ("first", "last", *self.costly, "cheap") if word in text)
        self.checked.append((name, quick))
        self.entered.release()
        assert self.releases.acquire(timeout=60)
        return None if quick and name in self.costly else ""

    def close(self):
        self.releases.release(1000)


def recorded(*costly, builders=1):
    """A compiler whose first build, of "first", is held by its checker until `releases` grow."""
    checker = RecordingChecker(*costly)
    compiler = toy_compiler(checker=lambda: checker, builders=builders)
    first = compiler.build(Grammar.regex("first"))
    assert checker.entered.acquire(timeout=60)
    return compiler, checker, first


def test_a_build_is_not_started_when_nobody_waits_for_it():
    compiler, checker, _ = recorded()
    left = [compiler.build(Grammar.regex("cheap")) for _ in range(2)]
    last = compiler.build(Grammar.regex("last"))
    for one in left:
        assert one.cancel()
    checker.releases.release(10)
    last.result(60)
    assert checker.checked == [("first", True), ("last", True)]
    compiled(compiler, Grammar.regex("cheap"))  # asked for again, it is built
    compiler.close()


def test_cancelled_builds_do_not_count_as_pending(gated):
    compiler = toy_compiler(checker=gated, max_pending=2, builders=1)
    builds = [compiler.build(Grammar.regex(one)) for one in "ab"]
    builds[1].cancel()
    compiler.build(Grammar.regex("c"))
    with pytest.raises(QueueFull):
        compiler.build(Grammar.regex("d"))
    gated.gate.set()
    compiler.close()


def test_a_build_that_nobody_waits_for_any_more_is_not_tried_again():
    compiler, checker, _ = recorded("costly")
    costly = compiler.build(Grammar.regex("costly"))
    checker.releases.release()
    assert checker.entered.acquire(timeout=60)  # its first attempt runs
    costly.cancel()
    checker.releases.release(10)
    compiled(compiler, Grammar.regex("last"))
    assert checker.checked == [("first", True), ("costly", True), ("last", True)]
    compiler.close()


def test_costly_builds_wait_for_cheap_ones_that_came_later():
    compiler, checker, _ = recorded("costly1", "costly2", builders=1)
    names = ("costly1", "costly2", "cheap", "last")
    builds = [compiler.build(Grammar.regex(name)) for name in names]
    checker.releases.release(10)
    for build in builds:
        build.result(60)
    # The quick lane gives the oldest and the newest in turns.
    quick = [(name, True) for name in ("first", "last", "costly1", "cheap", "costly2")]
    assert checker.checked == [*quick, ("costly1", False), ("costly2", False)]
    compiler.close()


def test_a_closed_compiler_fails_the_builds_that_wait():
    compiler, checker, first = recorded()
    waiting = compiler.build(Grammar.regex("last"))
    compiler.close()
    first.result(0)
    with pytest.raises(EngineUnavailable):
        waiting.result(0)
    assert checker.checked == [("first", True)]


def test_a_closed_compiler_builds_nothing_and_compiled_grammars_stay_usable():
    compiler = toy_compiler()
    start = compiled(compiler, Grammar.regex("a"))
    compiler.close()
    compiler.close()
    with pytest.raises(EngineUnavailable):
        compiler.build(Grammar.regex("b"))
    assert start.matcher().consume([ord("a") - 32])


def test_a_compiled_schema_says_what_it_does_not_enforce(compiler):
    schema = {"type": "array", "items": {"type": "string", "format": "banana"}, "uniqueItems": True}
    built = compiler.build(Grammar.json_schema(schema)).result(60)
    assert built.not_enforced == ("format:banana", "uniqueItems")
    assert compiler.build(Grammar.regex("a")).result(60).not_enforced == ()


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar.regex("(["), "unclosed character class"),
        (Grammar.regex("(?=a)b"), "look-around"),
        (Grammar.lark("start: other"), "unknown name"),
        (Grammar.lark("start: /a/ & /b/"), "cannot be used"),
        (Grammar.lark("start: X\nX: /a/ & /b/"), "no text satisfies it"),
        (Grammar.json_schema({"not": {}}), "no text satisfies it"),
        (Grammar.json_schema({"$ref": "https://example.com/x.json"}), "example.com"),
        (Grammar.json_schema({"type": "integer", "minimum": 5, "maximum": 3}), "Unsatisfiable"),
        (Grammar.json_schema({"type": "string", "pattern": "(["}), "unclosed"),
    ],
)
def test_a_grammar_that_cannot_be_built_is_rejected_in_a_sentence(compiler, grammar, reason):
    with pytest.raises(InvalidRequest) as refused:
        compiled(compiler, grammar)
    message = str(refused.value)
    assert reason in message
    assert "\n" not in message
    assert message.endswith(".")
    assert refused.value.param == "grammar"


def schema_bomb(count=20):
    """2**count ways to take one object from each of `count` pairs."""
    return {
        "allOf": [
            {"anyOf": [{"properties": {f"{side}{i}": {"type": kind}}, "type": "object"}
                       for side, kind in (("a", "string"), ("b", "integer"))]}
            for i in range(count)
        ]
    }  # fmt: skip


REMAINDERS = Grammar.json_schema({"type": "integer", "multipleOf": 199_999})
"""Takes about a second and 100 MB."""
TOO_MUCH = {
    "a product of alternatives": Grammar.json_schema(schema_bomb()),
    "remainders of a large number": REMAINDERS,
    "remainders of a product": Grammar.json_schema(
        {"allOf": [{"type": "integer", "multipleOf": p} for p in (17, 101, 131)]}
    ),
    "thousands of optional properties": Grammar.json_schema(
        {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(10_000)}}
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_schema_over_a_limit_is_refused_and_the_next_one_built(name):  # regression 53
    compiler = toy_compiler(builders=1, checker=lambda: Checker(cpu_s=0.2))
    with pytest.raises(InvalidRequest, match="cannot be used"):
        compiled(compiler, TOO_MUCH[name])
    with pytest.raises(InvalidRequest, match="cannot be used"):  # from the cache
        compiler.build(TOO_MUCH[name]).result(0)
    compiled(compiler, Grammar.json_object())
    compiler.close()


def test_a_checker_that_dies_is_replaced():
    checker = Checker(cpu_s=1, wall_s=60)
    assert checker.check('{"grammars":[]}', quick=False)
    process = checker._process
    process.kill()
    process.wait()
    assert checker.check("start: /a/", quick=False) is None
    assert checker.check('{"grammars":[{"lark_grammar":"start: /a/"}]}', quick=False) == ""
    checker.close()
    with pytest.raises(EngineUnavailable):
        checker.check("start: /a/", quick=False)


def test_a_quick_check_ends_a_costly_build_and_not_its_process():
    checker = Checker(cpu_s=0.1, quick_cpu_s=0.02)
    text, _ = library_text(REMAINDERS, parse_source(REMAINDERS))
    assert checker.check(text, quick=True) is None
    process = checker._process
    assert checker.check(text, quick=False) is None
    assert checker.check('{"grammars":[{"lark_grammar":"start: /a/"}]}', quick=False) == ""
    assert checker._process is process
    checker.close()
