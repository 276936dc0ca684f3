from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.spark import RING_SECONDS, SampleRing, build_spark


def test_one_sample_a_second_the_greatest_of_it_and_zeros_for_silence():
    ring = SampleRing()
    assert ring.add(10.0, 1.0)
    assert not ring.add(10.9, 5.0)
    assert not ring.add(10.95, 2.0)
    assert ring.add(13.0, 4.0)
    assert ring.values == (5.0, 0.0, 0.0, 4.0)


def test_the_ring_is_bounded_and_starts_again_after_a_long_silence():
    ring = SampleRing()
    for second in range(RING_SECONDS * 2):
        ring.add(second, second)
    assert len(ring.values) == RING_SECONDS
    ring.add(10_000, 7.0)
    assert ring.values == (7.0,)


def test_a_spark_is_scaled_to_its_maximum_and_right_aligned():
    assert build_spark([0, 4, 8], 5, 1, UNICODE.spark) == ["   ▄█"]
    assert build_spark([1, 1000], 2, 1, UNICODE.spark) == ["▁█"]
    assert build_spark([], 3, 2, ASCII.spark) == ["   ", "   "]


def test_two_rows_share_the_height():
    upper, lower = build_spark([2, 4], 2, 2, UNICODE.spark)
    assert (upper, lower) == (" █", "██")
