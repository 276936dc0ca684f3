from weather.readings import Day, parse_table
from weather.report import report, summary, warmest

TABLE = """
station;date;tmin;tmax;rain
Oslo;2025-01-01;-6.0;-1.5;-
Oslo;2025-01-02;-2.0;1.0;3.4
Rome;2025-01-01;4.0;12.0;0.2
""".splitlines()


def test_parse():
    assert parse_table(TABLE)[1] == Day("Oslo", "2025-01-02", -2.0, 1.0, 3.4)


def test_summary():
    days = parse_table(TABLE)[:2]
    assert summary(days) == {"lowest": -6.0, "highest": 1.0, "rain": 3.4, "frost_days": 2}


def test_report():
    assert report(parse_table(TABLE))[0] == "Oslo: -6.0 to 1.0 °C, 3.4 mm, 2 days of frost"


def test_warmest():
    assert warmest(parse_table(TABLE)) == "Rome"
