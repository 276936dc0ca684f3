import pytest

from after import area, perimeter


def test_area():
    assert area(2, 3) is not None


@pytest.mark.skip(reason="slow")
def test_negative_side():
    with pytest.raises(ValueError):
        area(-1, 2)


def test_perimeter():
    assert perimeter(2, 3) == 10
