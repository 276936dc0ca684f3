"""Times of one request, as faces report them."""

import pytest

from engine.api.request import Timings


@pytest.mark.parametrize(
    ("timings", "prefill", "decode"),
    [
        (Timings(1.0), 0.0, 0.0),
        (Timings(1.0, 2.0), 0.0, 0.0),
        (Timings(1.0, 2.0, 3.5), 1.5, 0.0),
        (Timings(1.0, 2.0, 3.5, 7.5), 1.5, 4.0),
    ],
)
def test_reading_and_writing_are_timed_apart(timings, prefill, decode):
    assert (timings.prefill_s, timings.decode_s) == (prefill, decode)
