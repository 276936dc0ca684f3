from basket import Basket
from totals import receipt, tax, total


def test_mixed_rates():
    basket = Basket()
    basket.add("pen", 250, 4)
    basket.add("book", 2000, reduced_tax=True)
    assert tax(basket, 0) == 300
    assert tax(basket, 25) == 225
    assert tax(basket, 50) == 150
    assert tax(basket, 100) == 0
    assert total(basket, 100) == 490


def test_free_shipping_is_lost_by_the_discount():
    basket = Basket()
    basket.add("coat", 5000)
    assert total(basket, 10) == 4500 + 900 + 490
    assert receipt(basket, 10)[-1] == "total: 58.90"
    assert receipt(basket, 10)[1] == "discount 10 %: -5.00"
