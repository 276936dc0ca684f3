"""Varied tests: other values in the same tests, to tell candidates apart that the tests do not."""

import ast

import pytest

from agents.repair.failing_tests.trials import TrialResult
from agents.repair.failing_tests.varied_tests import MAX_VARIED, signature, varied_tests
from agents.workspace.workspace import Workspace

TEXT = """import pytest
from shop import Shop

START = "day 7"


@pytest.fixture
def shop():
    return Shop(3)


@pytest.mark.parametrize("size", [1, 2])
def test_sell(shop, size):
    shop.sell(size)
    assert shop.left("a") == 12


class TestOpen:
    def test_hours(self):
        assert Shop(1).hours == [9, 18]
"""


def varied(*tests, text=TEXT):
    return varied_tests(tests, Workspace.of_texts({"tests/test_shop.py": text}))


def test_a_test_of_a_file_has_copies_with_other_values():
    found = varied("tests/test_shop.py::test_sell[1]", "tests/test_shop.py::test_sell[2]")
    text = found.files["tests/test_pravaha_test_shop_varied.py"]
    names = [one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    assert names[:2] == ["shop", "test_sell"]
    assert len(names) == len(set(names)) > 4
    assert "shop.left('aa')" in text
    assert "shop.sell(size)\n    shop.sell(size)" in text
    ids = [one.partition("::") for one in found.tests]
    assert {path for path, _, _ in ids} == set(found.files)
    assert all("test_sell" in name for _, _, name in ids)


def test_expected_values_are_left_alone():
    text = varied("tests/test_shop.py::test_sell").files["tests/test_pravaha_test_shop_varied.py"]
    assert text.count("== 12") == text.count("shop.left(")


def test_methods_stay_in_their_class():
    found = varied("tests/test_shop.py::TestOpen::test_hours")
    text = found.files["tests/test_pravaha_test_shop_varied.py"]
    assert any("::TestOpen::test_hours_varied_" in one for one in found.tests)
    (owner,) = (one for one in ast.parse(text).body if isinstance(one, ast.ClassDef))
    assert len(owner.body) > 1


def test_what_tests_share_is_varied_in_copies_of_the_file():
    found = varied("tests/test_shop.py::test_sell")
    around = [text for path, text in found.files.items() if "around" in path]
    assert around
    assert all(text != TEXT and "def test_sell" in text for text in around)


def test_the_same_tests_give_the_same_variations_and_not_too_many():
    many = "def test_a():\n" + "".join(f"    f({at}, {at + 1})\n" for at in range(99))
    first = varied("tests/test_shop.py::test_a", text=many)
    assert first == varied("tests/test_shop.py::test_a", text=many)
    assert len(first.tests) == MAX_VARIED


def test_a_file_that_does_not_parse_has_none():
    assert varied("tests/test_shop.py::test_a", text="def (").tests == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("E   assert 1 == 2", "E   assert 1 == 2\n\nx.py:9: AssertionError", True),
        ("E   assert 1 == 2", "E   assert 3 == 2", False),
        ("E   <A object at 0x7f00>", "E   <A object at 0x8100>", True),
        ("E   KeyError: 'a'", "E   TypeError: 'a'", False),
    ],
)
def test_what_a_failure_says_is_compared_without_places_and_addresses(one, other, same):
    first, second = (
        signature(TrialResult({"t": "failed"}, {"t": text}), ["t"]) for text in (one, other)
    )
    assert (first == second) is same


def test_a_test_that_did_not_run_differs_from_one_that_did():
    assert signature(TrialResult(), ["t"]) != signature(TrialResult({"t": "passed"}), ["t"])
