import pytest

from change import change, num_coins
from till import Till, cents, euros, tax_part


def test_euros():
    assert euros(1999) == "19.99"
    assert euros(-5) == "-0.05"


def test_cents_of_whole_amounts():
    assert cents("12") == 1200
    assert cents(0.5) == 50


def test_day():
    till = Till(10000)
    till.sell("19.99", "1.10")
    till.sell(4.35)
    assert till.day_total() == "25.44"


def test_refund():
    till = Till()
    till.sell("2.00")
    with pytest.raises(ValueError):
        till.refund("3")
    till.refund("1.50")
    assert till.balance == 50


def test_change():
    assert change(388) == {200: 1, 100: 1, 50: 1, 20: 1, 10: 1, 5: 1, 2: 1, 1: 1}
    assert num_coins(40) == 2


def test_tax_part():
    assert tax_part(1190, "19") == 190
