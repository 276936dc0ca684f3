import pytest

from shipment import Shipment, cheapest_zone, cost
from tariffs import Step, Tariff


@pytest.fixture
def tariff():
    tariff = Tariff()
    tariff.set_steps("near", [Step(10, 900), Step(2, 400)])
    tariff.set_steps("far", [Step(2, 1200), Step(10, 2500)])
    return tariff


def test_steps(tariff):
    assert tariff.price("near", 2) == 400
    assert tariff.price("near", 2.1) == 900
    with pytest.raises(ValueError):
        tariff.price("near", 11)


def test_cost(tariff):
    assert cost(Shipment("near", [1, 5], insured=True), tariff) == 400 + 900 + 250


def test_cheapest(tariff):
    assert cheapest_zone([1, 1], tariff) == "near"


def test_new_prices_hold_at_once(tariff):
    assert tariff.price("near", 1) == 400
    tariff.set_steps("near", [Step(10, 500)])
    assert tariff.price("near", 1) == 500
