import pytest

from postage.items import KINDS, Item
from postage.rates import cheapest, fits, postage


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_borders(kind):
    long, wide, high = kind.sides
    assert fits(Item(wide, high, long, kind.grams), kind)
    assert not fits(Item(long, wide, high, kind.grams + 1), kind)
    assert not fits(Item(long + 0.1, wide, high, 1), kind)
    assert not fits(Item(long, wide + 0.1, high, 1), kind)
    assert not fits(Item(long, wide, high + 0.1, 1), kind)


def test_heavy_and_small():
    assert cheapest(Item(10, 10, 1, 31500)).name == "parcel"
    assert cheapest(Item(10, 10, 1, 31501)) is None
    assert cheapest(Item(121, 1, 1, 5)) is None
    assert postage([Item(10, 10, 0.1, 20), Item(10, 10, 0.1, 21)]) == 275
