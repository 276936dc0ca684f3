import pytest

from postage.items import Item
from postage.rates import cheapest, counts, postage

CARD = Item(15, 10, 0.1, 8)
BOOK = Item(20, 13, 3, 400)


def test_letter():
    assert cheapest(CARD).name == "letter"


def test_book():
    assert cheapest(BOOK).name == "packet"


def test_heavy_card():
    assert cheapest(Item(15, 10, 0.1, 30)).name == "large letter"


def test_turned():
    assert cheapest(Item(0.1, 10, 15, 8)).name == "letter"


def test_too_large():
    with pytest.raises(ValueError):
        postage([Item(200, 10, 10, 100)])


def test_counts():
    assert counts([CARD, BOOK, CARD]) == {"letter": 2, "packet": 1}
