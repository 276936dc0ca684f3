"""Builds of grammars: cached, asynchronous, bounded, with errors in one sentence."""

import threading
from types import SimpleNamespace

import orjson
import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.grammar import Grammar
from engine.grammar.checker import TOO_COSTLY, Checker
from tests.fakes.grammars import compiled, toy_compiler


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler()
    yield compiler
    compiler.close()


class GatedChecker:
    """A checker that blocks until the test opens the gate."""

    gate = threading.Event()

    def check(self, text):
        assert self.gate.wait(60)
        return ""

    def close(self):
        self.gate.set()


@pytest.fixture
def gated():
    GatedChecker.gate = threading.Event()
    return GatedChecker


def test_a_grammar_is_built_once(compiler):
    first = compiler.build(Grammar.regex("abc"))
    assert compiler.build(Grammar.regex("abc")) is first
    assert compiler.build(Grammar.regex("abd")) is not first
    assert compiler.build(Grammar.lark('start: "abc"')) is not first


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
    first = compiler.build(Grammar.regex("abc"))
    assert compiler.build(Grammar.regex("abc")) is first
    assert not first.done()
    gated.gate.set()
    assert first.result(60).matcher().consume([ord("a") - 32])
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


def test_a_closed_compiler_builds_nothing_and_compiled_grammars_stay_usable():
    compiler = toy_compiler()
    start = compiled(compiler, Grammar.regex("a"))
    compiler.close()
    compiler.close()
    with pytest.raises(EngineUnavailable):
        compiler.build(Grammar.regex("b"))
    assert start.matcher().consume([ord("a") - 32])


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar.regex("(["), "unclosed character class"),
        (Grammar.regex("(?=a)b"), "look-around"),
        (Grammar.lark("start: other"), "unknown name"),
        (Grammar.lark("start: /a/ & /b/"), "cannot be used"),
        (Grammar.lark("start: X\nX: /a/ & /b/"), "no text satisfies it"),
        (Grammar.json_schema({"not": {"type": "string"}}), "not"),
        (Grammar.json_schema({"uniqueItems": True, "type": "array"}), "uniqueItems"),
        (Grammar.json_schema({"$ref": "https://example.com/x.json"}), "example.com"),
        (Grammar.json_schema({"type": "string", "format": "banana"}), "banana"),
        (Grammar.json_schema({"type": "integer", "minimum": 5, "maximum": 3}), "Unsatisfiable"),
        (Grammar.json_schema({"type": "string", "pattern": "(["}), "unclosed"),
        (Grammar.json_schema({"oneOf": [{"type": "integer"}, {"minimum": 3}]}), "oneOf"),
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


HOSTILE = {
    "a product of alternatives": Grammar.json_schema(schema_bomb()),
    "remainders of a large number": Grammar.json_schema(
        {"type": "integer", "multipleOf": 99999989}
    ),
    "remainders of a large product": Grammar.json_schema(
        {"allOf": [{"type": "integer", "multipleOf": p} for p in (97, 101, 103, 107)]}
    ),
    "thousands of optional properties": Grammar.json_schema(
        {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(10_000)}}
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_refused_and_the_next_one_built(name):  # regression 53
    compiler = toy_compiler(builders=1, checker=lambda: Checker(cpu_s=1, max_bytes=512 << 20))
    with pytest.raises(InvalidRequest, match="cannot be used"):
        compiled(compiler, HOSTILE[name])
    with pytest.raises(InvalidRequest, match="cannot be used"):  # from the cache
        compiler.build(HOSTILE[name]).result(0)
    compiled(compiler, Grammar.json_object())
    compiler.close()


def test_a_checker_that_dies_is_replaced():
    checker = Checker(cpu_s=1, wall_s=60)
    assert checker.check('{"grammars":[]}') != TOO_COSTLY
    process = checker._process
    process.kill()
    process.wait()
    assert checker.check("start: /a/") == TOO_COSTLY
    assert checker.check('{"grammars":[{"lark_grammar":"start: /a/"}]}') == ""
    checker.close()
    assert "shutting down" in checker.check("start: /a/")
