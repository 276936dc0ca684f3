from pricing import price


def test_children_are_free():
    assert price(5, 1000) == 0


def test_youth_pays_half():
    assert price(13, 1000) == 500


def test_adults_pay_all():
    assert price(14, 1000) == 1000
