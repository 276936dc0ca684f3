"""Code that a model wrote is judged by running it, not by its words."""

import pytest

from agents.sandbox.sandbox import SandboxUnavailable
from agents.steps.measures import code_check
from agents.steps.measures.code_check import error_of, fenced_code
from agents.steps.measures.function_items import ITEMS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Here it is:\n```py\nx = 1\n\ny = 2\n```\nIt works.", "x = 1\n\ny = 2\n"),
        ("```\nx = 1", "x = 1\n"),
        ("x = 1\n", "x = 1\n"),
        ("```python\nfirst = 1\n```\nand\n```python\nsecond = 2\n```", "first = 1\n"),
    ],
)
def test_the_code_of_a_text(text, code):
    assert fenced_code(text) == code


@pytest.mark.parametrize(
    "body", ["items[-1]", "items[len(items) - 1]", "items[-1:][0]", "list(reversed(items))[0]"]
)
async def test_any_way_to_write_a_function_is_right_if_it_passes(body):
    last = next(item for item in ITEMS if item.name == "last")
    checks = "\n".join(f"assert {one}" for one in last.checks)
    assert await error_of(f"def last(items):\n    return {body}\n{checks}") == ""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("assert 1 == 2", "AssertionError"),
        ("def f(:\n    pass", "SyntaxError"),
        ("missing()", "NameError"),
    ],
)
async def test_what_fails_says_how(code, error, monkeypatch):
    async def none():
        raise SandboxUnavailable("There is none.")

    monkeypatch.setattr(code_check, "open_sandbox", none)
    assert error in await error_of(code)


async def test_what_the_subset_lacks_runs_in_the_sandbox():
    try:
        await code_check.open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    generator = "def numbers():\n    yield 1\n    yield 2\n"
    assert await error_of(f"{generator}assert list(numbers()) == [1, 2]") == ""
    assert "AssertionError" in await error_of(f"{generator}assert list(numbers()) == [3]")


REFERENCES = {
    "add": "def add(a, b):\n    return a + b",
    "is_even": "def is_even(n):\n    return n % 2 == 0",
    "last": "def last(items):\n    return items[-1]",
    "count_vowels": "def count_vowels(text):\n    return sum(c in 'aeiou' for c in text.lower())",
    "unique": "def unique(items):\n    return list(dict.fromkeys(items))",
    "average": "def average(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0",
    "pairs": "def pairs(text):\n    return {k: int(v) for k, v in (p.split('=') for p in text.split(';') if p)}",
    "chunks": "def chunks(items, size):\n    return [items[i:i + size] for i in range(0, len(items), size)]",
    "is_palindrome": "def is_palindrome(text):\n    s = [c.lower() for c in text if c.isalpha()]\n    return s == s[::-1]",
    "binary_search": "def find(items, wanted):\n    return items.index(wanted) if wanted in items else -1",
    "flatten": "def flatten(nested):\n    flat = []\n    for one in nested:\n        if isinstance(one, list):\n"
    "            flat += flatten(one)\n        else:\n            flat.append(one)\n    return flat",
    "balanced": "def balanced(text):\n    stack = []\n    for c in text:\n        if c in '([{':\n"
    "            stack.append(c)\n        elif c in ')]}':\n"
    "            if not stack or stack.pop() + c not in ('()', '[]', '{}'):\n                return False\n"
    "    return not stack",
    "merge": "def merge(spans):\n    out = []\n    for a, b in sorted(spans):\n"
    "        if out and a <= out[-1][1]:\n            out[-1] = (out[-1][0], max(b, out[-1][1]))\n"
    "        else:\n            out.append((a, b))\n    return out",
    "roman": "def roman(number):\n    text = ''\n    for value, sign in [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'),"
    " (100, 'C'), (90, 'XC'), (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]:\n"
    "        while number >= value:\n            text += sign\n            number -= value\n    return text",
}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
async def test_each_item_accepts_a_right_function_and_refuses_the_one_that_is_shown(item):
    checks = "\n".join(f"assert {one}" for one in item.checks)
    assert await error_of(f"{REFERENCES[item.name]}\n{checks}") == ""
    shown = item.request.partition("\n\n")[2]
    if item.name != "binary_search":  # what is shown there never ends
        assert await error_of(f"{shown}\n    pass\n{checks}")
