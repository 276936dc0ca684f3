"""A shop whose `due` gives a discount one piece too late, and tests that show it."""

import textwrap

import pytest

from agents.project_tests.results import TestResults
from agents.repair.failing_tests.test_bench import TestBench
from agents.repair.failing_tests.test_python import TestPython
from agents.repair.work_copy import WorkCopy

SHOP = textwrap.dedent(
    '''
    """Prices of a shop."""

    BULK = 10


    def price(pieces: int, cents: int) -> int:
        return pieces * cents


    def due(pieces: int, cents: int) -> int:
        """The price, a tenth less for ten pieces and more."""
        whole = price(pieces, cents)
        if pieces > BULK:
            return whole - whole // 10
        return whole
    '''
).lstrip()
TESTS = textwrap.dedent(
    """
    from shop import due, price

    def test_price():
        assert price(3, 5) == 15

    def test_few():
        assert due(9, 100) == 900

    def test_ten():
        assert due(10, 100) == 900

    def test_many():
        assert due(20, 100) == 1800
    """
).lstrip()
FAILING = "test_shop.py::test_ten"


@pytest.fixture
def shop(tmp_path):
    root = tmp_path / "shop"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / "test_shop.py").write_text(TESTS)
    (root / "pyproject.toml").write_text("")
    return root


@pytest.fixture
def copy(shop):
    with WorkCopy(shop) as opened:
        yield opened


@pytest.fixture
def bench(copy):
    """Opens a bench over the copy, in which the named tests fail."""

    async def opened(*failing):
        names = frozenset(f"test_shop::{one}" for one in failing or ("test_ten",))
        return await TestBench.open(copy, TestPython(), TestResults(failed=names))

    return opened
