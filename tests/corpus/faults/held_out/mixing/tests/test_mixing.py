import pytest

from mixing.plan import check, parts, plan
from mixing.solutions import Solution, diluted, mixed


def test_grams():
    assert Solution(500, 2).grams == pytest.approx(10)


def test_mixed():
    assert mixed(Solution(100, 10), Solution(300, 2)).percent == pytest.approx(4)
    assert mixed(Solution(0, 1), Solution(0, 2)).millilitres == 0


def test_diluted():
    assert diluted(Solution(100, 10), 5).millilitres == pytest.approx(200)
    with pytest.raises(ValueError):
        diluted(Solution(100, 10), 11)


def test_parts_with_water():
    assert parts(10, 0, 4) == pytest.approx((0.4, 0.6))


def test_parts():
    assert parts(10, 2, 4) == pytest.approx((0.25, 0.75))


def test_plan():
    assert check(20, 5, 10, 300)
    assert plan(20, 0, 10, 300)[0].millilitres == pytest.approx(150)
