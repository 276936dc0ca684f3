import pytest

from before import area, is_square, perimeter


def test_area():
    assert area(2, 3) == 6


def test_negative_side():
    with pytest.raises(ValueError):
        area(-1, 2)


def test_open_perimeter():
    assert perimeter(2, 3, closed=False) == 7


def test_square():
    assert is_square(2, 2)
