import pytest

from stock.errors import UnknownItem
from stock.orders import Order, fulfil
from stock.store import Store


def test_unknown_item_is_told_by_every_call():
    store = Store()
    for call in (lambda: store.count("x"), lambda: store.take("x", 1)):
        with pytest.raises(UnknownItem) as caught:
            call()
        assert caught.value.item == "x"


def test_nothing_is_taken_and_all_problems_are_listed():
    store = Store()
    store.receive("a", 1)
    store.receive("b", 5)
    order = Order({"b": 2, "a": 2, "c": 1})
    assert not fulfil(order, store)
    assert order.problems == ["2 of a wanted, 1 left", "no item c"]
    assert (store.count("a"), store.count("b")) == (1, 5)


def test_empty_shelf_is_known():
    store = Store()
    store.receive("a", 1)
    store.take("a", 1)
    assert store.count("a") == 0
