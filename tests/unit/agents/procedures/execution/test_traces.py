"""Stack traces of five languages, and the causes of failures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.procedures.execution.debugger import diagnose
from agents.procedures.execution.traceback_parser import parse_trace
from agents.workspace.workspace import Workspace

JS = """/srv/app/cart.js:3
  return item.price.amount;
                    ^

TypeError: Cannot read properties of undefined (reading 'amount')
    at total (/srv/app/cart.js:3:21)
    at Object.<anonymous> (/srv/app/index.js:9:3)
    at node:internal/main/run_main_module:23:47
"""
RUST = """thread 'main' panicked at src/main.rs:4:37:
index out of bounds: the len is 3 but the index is 7
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
JAVA = """Exception in thread "main" java.lang.RuntimeException: wrapped
\tat org.example.App.run(App.java:20)
Caused by: java.lang.NullPointerException: Cannot invoke "String.length()" because "name" is null
\tat org.example.Names.size(Names.java:7)
\tat org.example.App.run(App.java:18)
"""
CHAINED = """Traceback (most recent call last):
  File "/app/a.py", line 1, in first
    x
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/b.py", line 2, in second
    raise ValueError("bad")
shop.errors.OrderError: bad
"""
PYTEST = """    def test_mean():
>       assert mean([1, 2]) == 2
E       AssertionError: assert 1.5 == 2

tests/test_stats.py:4: AssertionError
"""


@pytest.mark.parametrize(
    ("text", "language", "error", "last"),
    [
        (JS, "javascript", "TypeError", ("/srv/app/cart.js", 3)),
        (RUST, "rust", "panic", ("src/main.rs", 4)),
        (JAVA, "java", "java.lang.NullPointerException", ("org/example/Names.java", 7)),
        (CHAINED, "python", "shop.errors.OrderError", ("/app/b.py", 2)),
        (PYTEST, "python", "AssertionError", ("tests/test_stats.py", 4)),
    ],
)
def test_traces_are_read(text, language, error, last):
    trace = parse_trace(text)
    assert (trace.language, trace.error) == (language, error)
    assert (trace.frames[-1].file, trace.frames[-1].line) == last


def python_failure(error: str, line: str, more: str = "") -> str:
    text = f'Traceback (most recent call last):\n  File "/app/a.py", line 1, in f\n    {line}\n{error}\n'
    return diagnose(parse_trace(text), Workspace.of_texts({"a.py": f"{line}\n{more}"})).cause


@pytest.mark.parametrize(
    ("error", "line", "more", "cause"),
    [
        ("KeyError: 'colour'", "x = d['colour']", "d = {'color': 1}\n", "has the key 'color'"),
        (
            "AttributeError: 'NoneType' object has no attribute 'group'",
            "m.group(1)",
            "",
            "`m` is None",
        ),
        ("IndexError: list index out of range", "return rows[0]", "", "`rows` has no element `0`"),
        (
            "NameError: name 'totl' is not defined",
            "print(totl)",
            "total = 1\n",
            "Did you mean `total`",
        ),
        (
            "ModuleNotFoundError: No module named 'yaml'",
            "import yaml",
            "",
            "`yaml` is not installed",
        ),
        (
            "ValueError: invalid literal for int() with base 10: 'x'",
            "int(t)",
            "",
            "'x' is no number",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'",
            "open(p)",
            "",
            "`a.csv`",
        ),
        ("ZeroDivisionError: division by zero", "a / (b)", "", "`b` is zero"),
    ],
)
def test_causes_name_what_failed(error, line, more, cause):
    assert cause in python_failure(error, line, more)


def test_an_index_of_rust_is_the_larger_number():
    cause = diagnose(parse_trace(RUST), Workspace.of_texts({})).cause
    assert cause == "The index 7 is outside of a sequence of length 3."


def test_installed_files_are_not_suspected():
    text = (
        'Traceback (most recent call last):\n  File "/app/a.py", line 1, in f\n    g()\n'
        '  File "/usr/lib/python3.11/json/a.py", line 1, in g\n    raise E\nValueError: bad\n'
    )
    diagnosis = diagnose(parse_trace(text), Workspace.of_texts({"a.py": "g()\n"}))
    assert (diagnosis.file, diagnosis.line) == ("a.py", 1)
    assert "outside of the files" in diagnosis.cause
    assert [frame.in_workspace for frame in diagnosis.frames] == [True, False]


@given(st.text(max_size=300), st.sampled_from([JS, RUST, JAVA, CHAINED, PYTEST, ""]))
def test_any_text_is_a_trace_or_none(text, trace):
    found = parse_trace(text + trace)
    if found is not None:
        diagnose(found, Workspace.of_texts({"a.py": text}))
