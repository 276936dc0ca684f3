"""The checks: what each lets pass, and what it says of the rest."""

import pytest

from agents.width.checks.defines import Defines
from agents.width.checks.examples import Examples
from agents.width.checks.parses import Parses
from agents.width.examples import examples_in
from agents.width.probe_run import Setting
from agents.width.signature import Signature


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("def f(:\n", "Line 1: invalid syntax."),
        ("x = 1\x00", "source code string cannot contain null bytes"),
        ("(" * 300, "too many nested parentheses"),
    ],
)
async def test_what_does_not_parse(code, detail):
    outcome = await Parses().judge(code)
    assert not outcome.passed
    assert detail in outcome.detail


WANTED = Signature("f", ("a", "b"))


@pytest.mark.parametrize(
    "code",
    [
        "def f(a, b):\n    return a\n",
        "def f(a: int, b: int = 2) -> int:\n    return a\n",
        "def f(a, b, c=None):\n    return a\n",
        "def f(a, b, *more, key=1, **rest):\n    return a\n",
        "import x\n\ndef helper():\n    pass\n\ndef f(a, b):\n    return helper()\n",
        "if True:\n    def f(a, b):\n        return a\n",
        "def f():\n    return 1\n\ndef f(a, b):\n    return 2\n",
    ],
)
async def test_what_defines_the_function(code):
    assert (await Defines(WANTED).judge(code)).passed


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("x = 1\n", "It does not define def f(a, b)."),
        ("def f(b, a):\n    return a\n", "It must be def f(a, b), not def f(b, a)."),
        ("def f(a):\n    return a\n", "It must be def f(a, b), not def f(a)."),
        ("def f(a, b, c):\n    return a\n", "It must be def f(a, b), not def f(a, b, c)."),
        ("async def f(a, b):\n    return a\n", "It must be def f(a, b)."),
        ("class f:\n    x = 1\n", "f is a class, not a function."),
        ("def f(a, b):\n    pass\n", "f is left empty."),
        ("def f(a, b):\n    '''Text.'''\n    ...\n", "f is left empty."),
        ("def f(a, b):\n    raise NotImplementedError\n", "f is left empty."),
    ],
)
async def test_what_does_not(code, detail):
    outcome = await Defines(WANTED).judge(code)
    assert not outcome.passed
    assert outcome.detail == detail


async def test_a_method_is_found_in_its_class():
    method = Signature("Box.get", ("self", "key"))
    assert (
        await Defines(method).judge("class Box:\n    def get(self, key):\n        return 1\n")
    ).passed
    assert not (await Defines(method).judge("def get(self, key):\n    return 1\n")).passed
    assert not (
        await Defines(method).judge("class Box:\n    def put(self):\n        return 1\n")
    ).passed


def examples(text):
    return Examples(Setting(call_s=0.3), examples_in(text, "f", ("x",)))


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        ("f(2) == 3", "def f(x):\n    return x\n", "f(2) should be 3, but it is 2."),
        ("f(2) == 3", "def f(x):\n    print(3)\n", "f(2) should be 3, but it prints '3' and returns None."),
        ("f(2) == 3", "def f(x):\n    pass\n", "f(2) should be 3, but it returns None."),
        ("f(2) == 3", "def f(x):\n    return y\n", "it raises NameError in line 2: name 'y' is not defined."),
        ("f(2) == 3", "def f(x):\n    while 1: pass\n", "f(2) should be 3, but it does not end in time."),
        ("f(2) == 3", "import nothing_here\n", "It cannot be loaded in line 1: ModuleNotFoundError"),
        ("f(2) == 3\nf(3) == 3", "def f(x):\n    return x\n", "(1 of 2 examples fail.)"),
        (">>> f(2)\nTraceback (most recent call last):\nValueError", "def f(x):\n    return x\n", "f(2) should raise ValueError, but it is 2."),
        (">>> print(f(2))\n<3>", "def f(x):\n    return x\n", "print(f(2)) should print <3>, but it prints '2' and returns None."),
    ],
)  # fmt: skip
async def test_an_example_that_does_not_hold(text, code, detail):
    outcome = await examples(text).judge(code)
    assert not outcome.passed
    assert detail in outcome.detail


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("f(2) == 0.3", "def f(x):\n    return 0.1 + 0.2\n"),
        ("f(2) == {1, 2}", "def f(x):\n    return {2, 1}\n"),
        (
            ">>> f(2)\nTraceback (most recent call last):\nValueError: no",
            "def f(x):\n    raise ValueError('other')\n",
        ),
        (">>> print(f(2))\n<3>", "def f(x):\n    return '<3>'\n"),
        (">>> y = f(2)\n>>> y + 1\n3", "def f(x):\n    return x\n"),
        ("no examples", "def f(x):\n    return x\n"),
    ],
)
async def test_an_example_that_holds(text, code):
    assert (await examples(text).judge(code)).passed


async def test_the_share_of_examples_compares_candidates():
    text = "f(1) == 1\nf(2) == 2\nf(3) == 9"
    half = await examples(text).judge("def f(x):\n    return x\n")
    none = await examples(text).judge("def f(x):\n    return -x\n")
    assert half.score > none.score
    assert examples(text).decides
    assert not examples("").decides
