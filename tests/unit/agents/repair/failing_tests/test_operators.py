"""Each usual slip, undone: some small change of the wrong text is the right one."""

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.detectors.audit.python_module import module_of
from agents.repair.failing_tests.operators import Place, small_changes
from agents.repair.failing_tests.suspects import functions_of
from agents.workspace.workspace import Workspace


def place_of(text, name="f", **more):
    file = Workspace.of_texts({"a.py": text}).get("a.py")
    module = module_of(file)
    node = dict(functions_of(module.tree)).get(name)
    if node is None:
        node = next(one for one in module.tree.body if isinstance(one, ast.Assign | ast.AnnAssign))
    return Place(module, text, node, **more)


def body(text):
    return (
        "def f(a, b, items):\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ") + "\n"
    )


SLIPS = {
    "bound": ("return a < b", "return a <= b"),
    "direction": ("return a < b", "return a > b"),
    "opposite": ("return a == b", "return a != b"),
    "identity": ("return a is b", "return a == b"),
    "or": ("return a and b", "return a or b"),
    "needless not": ("return not a", "return a"),
    "missing not": ("if a:\n    return b", "if not a:\n    return b"),
    "one more": ("return items[1]", "return items[2]"),
    "last for first": ("return items[0]", "return items[-1]"),
    "slice": ("return items[:a]", "return items[:a + 1]"),
    "range": ("for i in range(a):\n    items.pop()", "for i in range(a - 1):\n    items.pop()"),
    "unit": ("return a / 60", "return a / 3600"),
    "integer division": ("return a // b", "return a / b"),
    "rounded up": ("return a // b", "return -(-a // b)"),
    "rounded up without one more": ("return a // b + 1", "return -(-a // b)"),
    "round": ("return int(a)", "return round(a)"),
    "sides": ("return a - b", "return b - a"),
    "plus": ("return a - b", "return a + b"),
    "sign": ("return -a", "return a"),
    "sum": ("for i in items:\n    a = i\nreturn a", "for i in items:\n    a += i\nreturn a"),
    "parentheses": ("return (a - 1) / b - 1", "return (a - 1) / (b - 1)"),
    "average": ("return a + b / 2", "return (a + b) / 2"),
    "key": ("x = a['low']\nreturn b['high']", "x = a['low']\nreturn b['low']"),
    "attribute": ("x = a.low\nreturn a.high", "x = a.low\nreturn a.low"),
    "arguments": ("return g(a, b)", "return g(b, a)"),
    "indexes": ("return items[a][b]", "return items[b][a]"),
    "sibling": ("return min(a, b)", "return max(a, b)"),
    "sibling method": ("return a.rstrip()", "return a.strip()"),
    "sorted backwards": ("return sorted(items)", "return sorted(items, reverse=True)"),
    "sort key": (
        "return sorted(items, key=lambda one: (-one.a, one.b))",
        "return sorted(items, key=lambda one: (-one.a, -one.b))",
    ),
    "handlers": (
        "try:\n    return a()\nexcept Exception:\n    return 1\nexcept KeyError:\n    return 2",
        "try:\n    return a()\nexcept KeyError:\n    return 2\nexcept Exception:\n    return 1",
    ),
    "family of exceptions": (
        "try:\n    return a[b]\nexcept IndexError:\n    return 1",
        "try:\n    return a[b]\nexcept KeyError:\n    return 1",
    ),
    "closure": (
        "for one in items:\n    a.append(lambda: b(one))",
        "for one in items:\n    a.append(lambda one=one: b(one))",
    ),
    "closure with parameters": (
        "return [lambda x: x + one for one in items]",
        "return [lambda x, one=one: x + one for one in items]",
    ),
    "shadowed": (
        "for a in items:\n    b(a)\nreturn a",
        "for each_a in items:\n    b(each_a)\nreturn a",
    ),
    "reset": (
        "n = 0\nfor one in items:\n    if one:\n        a.append(n)\n    n += 1",
        "n = 0\nfor one in items:\n    if one:\n        a.append(n)\n        n = 0\n    n += 1",
    ),
    "guard of a call": (
        "one = a(b)\nif one.size > 1:\n    return b",
        "one = a(b)\nif one is not None and one.size > 1:\n    return b",
    ),
    "recursion": (
        "for one in items:\n    f(one, b, items)",
        "for one in items:\n    found = f(one, b, items)\n    if found is not None:\n        return found",
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_undone(slip):
    wrong, right = map(body, SLIPS[slip])
    texts = [one.applied(wrong) for one in small_changes(place_of(wrong))]
    assert ast.dump(ast.parse(right)) in [ast.dump(ast.parse(one)) for one in texts]
    assert len(texts) == len(set(texts))


WHOLE = {
    "flag": ("def f(strict=True):\n    return strict\n", "def f(strict=False):\n    return strict\n"),
    "none by default": (
        "def f(size: int | None = 60):\n    return size\n",
        "def f(size: int | None = None):\n    return size\n",
    ),
    "shared default": (
        "def f(a, found: list[int] = []):\n    found.append(a)\n    return found\n",
        "def f(a, found: list[int] | None = None):\n    if found is None:\n        found = []\n    found.append(a)\n    return found\n",
    ),
    "guard of a parameter": (
        "def f(a: str | None) -> str | None:\n    return a.strip()\n",
        "def f(a: str | None) -> str | None:\n    if a is None:\n        return None\n    return a.strip()\n",
    ),
    "missing return": (
        "def f(a) -> int:\n    found = a + 1\n    a.x = found\n",
        "def f(a) -> int:\n    found = a + 1\n    a.x = found\n    return found\n",
    ),
    "a key of the docstring": (
        'def f(row):\n    """Of the columns tmin and tmax."""\n    return row["tmin"]\n',
        'def f(row):\n    """Of the columns tmin and tmax."""\n    return row["tmax"]\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", WHOLE)
def test_a_slip_of_a_whole_function_is_undone(slip):
    wrong, right = WHOLE[slip]
    texts = [one.applied(wrong) for one in small_changes(place_of(wrong))]
    assert ast.dump(ast.parse(right)) in [ast.dump(ast.parse(one)) for one in texts]


CACHE = """class Rates:
    def get(self, key):
        if key not in self._kept:
            self._kept[key] = self._find(key)
        return self._kept[key]

    def grant(self, key):
        self._own.add(key)
        self._kept.pop(key, None)

    def revoke(self, key):
        self._own.discard(key)
"""


def test_a_cache_is_emptied_where_its_inputs_change():
    whats = [one.what for one in small_changes(place_of(CACHE, "Rates.revoke"))]
    assert "self._kept.clear()" in whats
    assert "self._kept.pop(key, None)" in whats
    assert not any("_kept.clear" in one.what for one in small_changes(place_of(CACHE, "Rates.get")))


def test_the_exception_that_the_test_saw_is_caught_and_the_wanted_one_raised():
    text = body("try:\n    return a()\nexcept OSError:\n    raise ValueError(a)")
    place = place_of(text, raised=frozenset(["Gone"]), expected=frozenset(["KeyError"]))
    whats = {one.what: one.tier for one in small_changes(place)}
    assert whats["Gone is caught, not OSError"] == 1
    assert whats["KeyError is raised, not ValueError"] == 1


def test_a_failed_assertion_is_never_caught():
    text = body("try:\n    return a()\nexcept OSError:\n    return 1")
    place = place_of(text, raised=frozenset(["AssertionError", "Exception"]))
    assert not any("Assertion" in one.what for one in small_changes(place))


def test_an_assignment_is_changed_too():
    assert "SIZE = 11\n" in [
        one.applied("SIZE = 10\n") for one in small_changes(place_of("SIZE = 10\n"))
    ]


def test_texts_with_letters_of_several_bytes_are_changed_in_the_right_place():
    text = "def f(a):\n    return 'äöü€' if a < 1 else 'é'\n"
    texts = [one.applied(text) for one in small_changes(place_of(text))]
    assert "def f(a):\n    return 'äöü€' if a <= 1 else 'é'\n" in texts


@given(st.sampled_from(sorted(SLIPS)), st.sampled_from(sorted(SLIPS)))
def test_every_change_parses_and_means_something_else(one, other):
    text = body(SLIPS[one][0] + "\n" + SLIPS[other][0])
    before = ast.dump(ast.parse(text))
    for change in small_changes(place_of(text)):
        assert ast.dump(ast.parse(change.applied(text))) != before
        assert text.split("\n")[change.line - 1]
