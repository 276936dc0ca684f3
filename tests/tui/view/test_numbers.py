import pytest

from app.tui.numbers import age, compact, duration, percent, rate, size


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (9949, "9.9k"), (24_000, "24k"), (999_499, "999k"),
     (999_500, "1.0M"), (134_515_008, "135M"), (2_500_000_000, "2.5G")],
)  # fmt: skip
def test_counts(count, text):
    assert compact(count) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0000005, "0 µs"), (0.00084, "840 µs"), (0.0034, "3.4 ms"), (0.12, "120 ms"),
     (0.9996, "1.00 s"), (1.239, "1.24 s"), (59.94, "59.9 s"), (59.96, "1 m 00 s"), (125, "2 m 05 s")],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.001, "<1%"), (0.0099, "<1%"), (0.01, "1%"), (0.5, "50%"), (1, "100%")],
)
def test_shares(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0.0"), (42.04, "42.0"), (99.96, "100")])
def test_rates(value, text):
    assert rate(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "now"), (59, "now"), (60, "1m"), (3599, "59m"), (7200, "2h"), (13 * 86400, "13d"),
     (14 * 86400, "2w"), (800 * 86400, "2y")],
)  # fmt: skip
def test_ages(seconds, text):
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (98 * 1024**2, "98 MiB"), (3 * 1024**4, "3.0 TiB")],
)  # fmt: skip
def test_sizes(nbytes, text):
    assert size(nbytes) == text
