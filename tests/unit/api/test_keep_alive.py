import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.keep_alive import FOR_EVER, keep_alive_seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0),
        (300, 300),
        (1.5, 1.5),
        ("300", 300),
        ("0", 0),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (" 10s ", 10),
        (-1, FOR_EVER),
        ("-1", FOR_EVER),
        ("-1m", FOR_EVER),
        (10**400, math.inf),
        (-(10**400), FOR_EVER),
        (math.inf, FOR_EVER),
        (1e10, FOR_EVER),
        ("999999999999h", FOR_EVER),
    ],
)
def test_a_number_or_a_duration(value, seconds):
    assert keep_alive_seconds(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["", "soon", "m5", "5 m 3", "1h 30m", "--1", "1e3", "٣", None, True, [], {}, math.nan]
)
def test_anything_else_is_refused_with_what_it_may_be(value):
    with pytest.raises(ValueError, match="seconds or a duration such as 5m"):
        keep_alive_seconds(value)


@given(st.one_of(st.text(max_size=30), st.text("0123456789.hmsuµn+-", max_size=30), st.floats()))
def test_any_value_is_seconds_or_refused(value):
    try:
        seconds = keep_alive_seconds(value)
    except ValueError:
        return
    assert seconds >= 0
    assert seconds == FOR_EVER or seconds < threading.TIMEOUT_MAX
