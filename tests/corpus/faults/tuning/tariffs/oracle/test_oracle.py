from shipment import Shipment, cost
from tariffs import Step, Tariff


def test_every_change_counts():
    tariff = Tariff()
    tariff.set_steps("a", [Step(5, 100)])
    tariff.set_steps("b", [Step(5, 70)])
    shipment = Shipment("a", [1, 2, 3])
    assert cost(shipment, tariff) == 300
    for cents in (10, 20, 30):
        tariff.set_steps("a", [Step(5, cents)])
        assert cost(shipment, tariff) == 3 * cents
        assert tariff.price("b", 1) == 70
    tariff.set_steps("b", [Step(1, 1)])
    assert tariff.price("b", 1) == 1


def test_prices_are_kept_between_changes():
    tariff = Tariff()
    tariff.set_steps("a", [Step(5, 100)])
    calls = []
    find = tariff._find
    tariff._find = lambda *given: calls.append(given) or find(*given)
    assert [tariff.price("a", 1) for _ in range(3)] == [100, 100, 100]
    assert len(calls) == 1
