from hypothesis import given
from hypothesis import strategies as st

from app.tui.view.window import FIRST, LIMIT, STEP, Window

MOVES = st.lists(st.sampled_from(["earlier", "later", "grow"]), max_size=60)


@given(st.integers(0, 5000), MOVES)
def test_however_one_moves_the_window_is_valid_and_bounded(total, moves):
    window = Window.at_end(total)
    for move in moves:
        if move == "grow":
            followed, total = window.follows, total + 3
            window = window.grown(total)
            assert window.follows == followed
        else:
            window = getattr(window, move)()
        assert 0 <= window.start <= window.end <= window.total == total
        assert window.end - window.start <= LIMIT


def test_every_message_can_be_reached():
    window = Window.at_end(500)
    assert (window.start, window.end) == (500 - FIRST, 500)
    seen = set(range(window.start, window.end))
    while window.start:
        before = window
        window = window.earlier()
        assert before.start - window.start == min(STEP, before.start)
        seen |= set(range(window.start, window.end))
    assert seen == set(range(500))
    while not window.follows:
        window = window.later()
    assert window.end == 500
