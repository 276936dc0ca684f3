"""Compressors: what stays, and that no text raises."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.memory.compress.code import code_signatures
from agents.memory.compress.json_shape import json_shape
from agents.memory.compress.logs import log_templates
from agents.memory.compress.stack_trace import stack_trace_frames
from agents.memory.compress.text import compress

PYTHON = '''class Store:
    """Keeps things."""

    def put(self, key: str, value: int = 0) -> None:
        self.values[key] = value

async def main() -> int:
    return 0
'''
TRACE = """Traceback (most recent call last):
  File "app/main.py", line 12, in run
    go()
  File "app/deep.py", line 3, in deep
    deep()
  File "app/deep.py", line 3, in deep
    deep()
ValueError: bad input
"""
LOG = "\n".join(
    f"2026-03-01T10:00:{n:02}Z WARN retry {n} of 5: refused by 10.0.0.{n}:5432" for n in range(9)
)


def test_code_becomes_signatures_with_lines():
    assert code_signatures("a.py", PYTHON) == (
        "1: class Store\n4:   def put(self, key: str, value: int = 0) -> None\n7: async def main() -> int"
    )


@pytest.mark.parametrize(
    ("path", "text", "head"),
    [
        ("a.rs", "impl P { fn take(&self, n: usize) -> u32 { 1 } }", "1:   fn take(&self, n: usize) -> u32"),
        ("a.go", "package a\nfunc (p *P) Take(n int) error {\n }", "2: func (p *P) Take(n int) error"),
        ("a.ts", "class A { take(n: number): void { } }", "1:   take(n: number): void"),
        ("A.java", "class A { int take(int n) { return 1; } }", "1:   int take(int n)"),
    ],
)  # fmt: skip
def test_other_languages_too(path, text, head):
    assert head in code_signatures(path, text)


def test_log_lines_that_differ_in_values_are_counted_together():
    assert log_templates(LOG + "\nstarted") == (
        "[9× in lines 1–9] <time> WARN retry <n> of <n>: refused by <ip>\nstarted"
    )


def test_a_trace_keeps_frames_and_error():
    assert stack_trace_frames(TRACE) == (
        "  app/main.py:12 in run\n  app/deep.py:3 in deep (2×)\nValueError: bad input"
    )


def test_a_trace_of_javascript():
    text = "TypeError: x is undefined\n    at run (/app/a.js:3:5)\n    at /app/b.js:9:1"
    assert (
        stack_trace_frames(text) == "TypeError: x is undefined\n  /app/a.js:3 in run\n  /app/b.js:9"
    )


def test_a_long_trace_keeps_both_ends():
    text = "".join(f'  File "a.py", line {n}, in f{n}\n' for n in range(1, 41)) + "KeyError: 'x'"
    lines = stack_trace_frames(text).splitlines()
    assert lines[0] == "  a.py:1 in f1"
    assert lines[6] == "  … 28 frames"
    assert lines[-2:] == ["  a.py:40 in f40", "KeyError: 'x'"]


def test_json_becomes_its_shape():
    document = {"users": [{"id": 1, "mail": "a"}, {"id": 2}], "next": None, "empty": []}
    assert json_shape(json.dumps(document)) == (
        '{"users": [2 × {"id": int, "mail"?: str}], "next": null, "empty": []}'
    )


def test_the_suited_compressor_is_chosen():
    assert compress(LOG).startswith("[9×")
    assert compress(TRACE).startswith("  app/main.py:12")
    assert compress(PYTHON, "a.py").startswith("1: class Store")
    assert compress(json.dumps([{"id": n} for n in range(100)])) == '[100 × {"id": int}]'
    assert compress("An ordinary sentence.") == "An ordinary sentence."


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 50_000, "(" * 20_000, '{"a":' * 3_000])
def test_deep_nesting_does_not_raise(text):
    assert len(compress(text, "a.py")) <= len(text)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_a_shape_has_no_values(value):
    def hidden(one):
        if isinstance(one, dict):
            return {name: hidden(inner) for name, inner in one.items()}
        if isinstance(one, list):
            return [hidden(inner) for inner in one]
        return type(one)() if one is not None else None

    assert json_shape(json.dumps(value)) == json_shape(json.dumps(hidden(value)))


@given(st.text(max_size=200), st.sampled_from(["", "a.py", "a.rs", "a.json", "x"]))
def test_no_text_raises_or_grows(text, path):
    assert len(compress(text, path)) <= len(text)
