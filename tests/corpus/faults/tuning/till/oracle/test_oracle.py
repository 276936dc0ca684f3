from till import Till, cents


def test_every_amount():
    for value in range(0, 30000):
        text = f"{value // 100}.{value % 100:02}"
        assert cents(text) == value
        assert cents(float(text)) == value


def test_negative():
    assert cents("-0.29") == -29
    assert cents(-4.35) == -435


def test_day():
    till = Till()
    for _ in range(3):
        till.sell(0.29, 0.57, 1.15)
    assert till.day_total() == "6.03"
