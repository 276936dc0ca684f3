from weather.readings import Day, parse_day
from weather.report import report, warmest


def test_columns():
    row = {"station": "X", "date": "d", "tmin": "1", "tmax": "9.5", "rain": "-"}
    assert parse_day(row) == Day("X", "d", 1.0, 9.5, 0.0)
    row = {"station": "Y", "date": "e", "tmin": "-3", "tmax": "-3", "rain": "7"}
    assert parse_day(row) == Day("Y", "e", -3.0, -3.0, 7.0)


def test_warmest_by_high():
    days = [Day("A", "1", 5, 6, 0), Day("B", "1", 0, 9, 0)]
    assert warmest(days) == "B"
    assert report(days)[1] == "B: 0.0 to 9.0 °C, 0.0 mm, 0 days of frost"
