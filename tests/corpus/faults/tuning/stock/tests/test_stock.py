import pytest

from stock.errors import OutOfStock
from stock.orders import Order, fulfil
from stock.store import Store


@pytest.fixture
def store():
    store = Store()
    store.receive("nut", 10)
    store.receive("bolt", 2)
    return store


def test_take(store):
    store.take("nut", 4)
    assert store.count("nut") == 6
    with pytest.raises(OutOfStock):
        store.take("bolt", 3)


def test_low(store):
    assert store.low(5) == ["bolt"]


def test_order(store):
    assert fulfil(Order({"nut": 1, "bolt": 2}), store)
    assert store.count("bolt") == 0


def test_order_of_an_unknown_item_is_refused(store):
    order = Order({"nut": 1, "screw": 1})
    assert not fulfil(order, store)
    assert order.problems == ["no item screw"]
    assert store.count("nut") == 10
