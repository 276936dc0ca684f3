from basket import Basket
from totals import percent, receipt, tax, total


def basket_of(*prices):
    basket = Basket()
    for price in prices:
        basket.add("thing", price)
    return basket


def test_percent_rounds():
    assert percent(1050, 5) == 53


def test_total_without_discount():
    assert total(basket_of(1000)) == 1000 + 200 + 490
    assert total(basket_of(5000)) == 6000


def test_tax():
    basket = basket_of(1000)
    basket.add("book", 1000, reduced_tax=True)
    assert tax(basket) == 250


def test_tax_is_on_what_is_paid():
    assert tax(basket_of(1000), discount=10) == 180


def test_total_with_discount():
    assert total(basket_of(6000), discount=10) == 5400 + 1080


def test_receipt():
    assert receipt(basket_of(100)) == ["1 x thing: 1.00", "total: 6.10"]
