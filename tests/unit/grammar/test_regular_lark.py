"""Lark grammars as regular expressions."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.grammar import Grammar
from engine.grammar.regular_lark import COMMON, NotRegular, lark_regex
from tests.fakes.grammars import compiled, toy_compiler
from tests.fakes.toy_tokenizer import ToyTokenizer

PATCH = r"""
// What a patch looks like.
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

hunk: add | delete
    | update
add: "*** Add File: " name LF added+
delete: "*** Delete File: " name LF
update: "*** Update File: " name LF move? change?
name: /(.+)/
added: "+" /(.*)/ LF -> line
move: "*** Move to: " name LF
change: (context | line)+ last?
context: ("@@" | "@@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of File" LF
%import common.LF
"""
GOOD = [
    "*** Begin Patch\n*** Add File: a.py\n+x = 'y'\n+\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: b\n*** Move to: c\n@@ def f\n-a\n+b\n c\n*** End Patch",
    "*** Begin Patch\n*** Delete File: d\n*** Update File: e\n@@\n+z\n*** End of File\n*** End Patch\n",
]
BAD = [
    "",
    "*** Begin Patch\n*** End Patch\n",
    GOOD[0][1:],
    GOOD[0] + "x",
    GOOD[0].replace("+x", "x"),
]


def matches(grammar, text):
    return re.fullmatch(lark_regex(grammar), text) is not None


def test_a_patch_matches_and_nothing_else_does():
    assert [matches(PATCH, text) for text in GOOD] == [True] * len(GOOD)
    assert [matches(PATCH, text) for text in BAD] == [False] * len(BAD)


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: "a" | "b" "c"', ["a", "bc"], ["", "ab", "abc"]),
        ('start: ("a" | "b")+', ["a", "abba"], ["", "c"]),
        ('start: ["a"] "b"', ["b", "ab"], ["a"]),
        ('start: "a"~2', ["aa"], ["a", "aaa"]),
        ('start: "a"~1..3 "b"?', ["a", "aaab"], ["", "aaaa"]),
        ('start: "a".."f"', ["c"], ["g", "-"]),
        ('start: "yes"i', ["YES", "yEs"], ["ye"]),
        ('start: A\nA.2: "+" | B\nB: /x[0-9]/', ["+", "x7"], ["x"]),
        ('?start: !x\n!x: "." /./s', [".\n"], ["..."[:1], "a."]),
        (r'start: "\"" "\\" "\n" "\x41" "é"', ['"\\\nAé'], ['"']),
        ('start: INT (WS INT)*\n%import common.INT\n%import common.WS', ["1 22"], ["1 "]),
        ("start: N\n%import common.NUMBER -> N", ["1.5e3", ".5"], ["x"]),
        ("start: INT WORD\n%import common (INT, WORD)", ["1a"], ["a1"]),
        ('start: "a"\n    | "b"\n\n    | "c"', ["a", "c"], ["d"]),
        ('start: "a" |', ["a", ""], ["b"]),
        ('start: "^$.|?*+()[]{}/-"', ["^$.|?*+()[]{}/-"], ["a"]),
    ],
)  # fmt: skip
def test_forms_of_lark(grammar, good, bad):
    assert [matches(grammar, text) for text in good] == [True] * len(good)
    assert [matches(grammar, text) for text in bad] == [False] * len(bad)


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "(" start ")" | "a"',
        'start: a\na: b\nb: a "x"',
        'start: "a"\n%ignore " "',
        'start: A\n%import other.A',
        "start: A\n%import common.NOT_THERE -> A",
        'start: _sep{"a"}\n_sep{x}: x',
        "start: " + " ".join(["/" + "a" * 90 + "/"] * 1000),
        "start: " + "(" * 200 + '"a"' + ")" * 200,
        'start: "a"~100000',
        "\n".join(["start: r0", *(f"r{i}: r{i + 1} r{i + 1}" for i in range(40)), 'r40: "ab"']),
    ],
)  # fmt: skip
def test_what_no_expression_can_stand_for(grammar):
    with pytest.raises(NotRegular):
        lark_regex(grammar)


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        ("", "no rule 'start'"),
        ("start: missing", "no rule 'missing'"),
        ('start: "a', "line 1"),
        ('start: "a"\nstart: "b"', "twice"),
        ('"a"', "outside a rule"),
        ('start: ("a"', "should go on"),
        ('start: ("a"]', "ends with"),
        ('start: "a")', "unexpected"),
        ("start: /[/", "not valid"),
        ('start: "b".."a"', "no range"),
        ('start: "a"~x', "repetitions"),
        ("start: * ", "begins no part"),
    ],
)
def test_what_is_no_grammar_is_refused_in_a_sentence(grammar, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        lark_regex(grammar)
    assert not isinstance(error.value, NotRegular)


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_read_or_refused(text):
    for grammar in (text, f"start: {text}", f'start: "a"\n{text}'):
        try:
            re.compile(lark_regex(grammar))
        except ValueError:
            pass


@pytest.mark.parametrize("name", COMMON)
def test_a_terminal_of_the_module_common_compiles(name):
    pattern = re.compile(lark_regex(f"start: {name}\n%import common.{name}"))
    samples = ["a", "A", "7", "f", "7.5", "\n", "\r", " ", '"x"']
    assert any(map(pattern.fullmatch, samples))
    assert not pattern.fullmatch("")


def test_a_string_of_a_json_schema_is_held_to_a_grammar():
    compiler = toy_compiler()
    try:
        pattern = f"^(?:{lark_regex(PATCH)})$"
        properties = {"input": {"type": "string", "pattern": pattern}}
        schema = {"type": "object", "properties": properties, "required": ["input"]}
        matcher = compiled(compiler, Grammar.json_schema(schema)).matcher()
    finally:
        compiler.close()
    encode = ToyTokenizer().encode
    assert not matcher.copy().consume(encode('{"input": "x'))
    assert not matcher.copy().consume(encode('{"input": "*** Begin Patch\\n*** End'))
    for text in GOOD:
        whole = matcher.copy()
        escaped = text.replace("\n", "\\n")
        assert whole.consume(encode(f'{{"input": "{escaped}"}}'))
        assert whole.accepting
