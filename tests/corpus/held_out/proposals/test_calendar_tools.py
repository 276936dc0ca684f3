import calendar_tools as tools


def test_first_week():
    assert tools.week_of(7) == 1
    assert tools.week_of(8) == 2


def test_shifts():
    assert [tools.shift(hour) for hour in (5, 6, 14, 23)] == ["night", "early", "late", "night"]


def test_per_week():
    assert tools.per_week(40, [1, 2]) == 20
